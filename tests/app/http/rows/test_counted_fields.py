"""A row whose limit names a field counts each value of that field separately."""

import socket
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from app.accounts.routes import ACCOUNT_ROUTES
from app.http.callers.area import Area
from app.http.callers.limits import Limit
from app.http.rows.endpoint import Call, Endpoint
from app.http.rows.inputs import Body, Query
from app.http.rows.replies import Empty
from app.services import Services
from storage.operators.audit import COMMAND
from streams.wire.model import Model
from tests.app.callers import ask
from tests.running.servers import Server, running_server

NOTES = Area("notes", "Notes", "Notes of users.")
LIMIT = Limit("detect", by="words")
RATES = {"rates": {"detect": {"count": 2, "per_s": 3600}}}


class Words(Model):
    words: str


async def search(call: Call, query: Query[Words]) -> Empty:
    """Search notes."""
    return Empty()


async def tag(call: Call, body: Body[Words]) -> Empty:
    """Tag notes."""
    return Empty()


ROWS = [
    *ACCOUNT_ROUTES,
    Endpoint("GET", "/bp/search", search, NOTES, limit=LIMIT),
    Endpoint("POST", "/bp/tag", tag, NOTES, limit=LIMIT),
]


@pytest.fixture
async def small(shared_server: Server, listener: socket.socket) -> AsyncIterator[Server]:
    services: Services = shared_server.services
    await services.configs.put("default", "limits", "default", RATES, author="tests", origin=COMMAND)
    async with running_server(services, listener, ROWS) as running:
        yield replace(running, url="http://{}:{}".format(*listener.getsockname()))


@pytest.mark.parametrize(("method", "path", "part"), [("GET", "/bp/search", "params"), ("POST", "/bp/tag", "json")])
async def test_rate_is_counted_for_each_user_and_value_of_a_field_of_the_query_or_the_body(
    small: Server, method: str, path: str, part: str
) -> None:
    ada, bob = [{"X-Service-Session-Token": (await small.login())[1]} for _ in range(2)]

    async def statuses(session: dict[str, str], *values: str) -> list[int]:
        return [
            (await ask(small, method, path, headers=session, **{part: {"words": value}}))[0] for value in values
        ]

    assert await statuses(ada, "tea", "tea", "tea") == [200, 200, 429]
    assert await statuses(ada, "milk", "Tea", "tea") == [200, 200, 429]
    assert await statuses(bob, "tea") == [200]
