"""Errors that the row of an endpoint does not list are logged and counted."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from aiohttp import ClientSession, web
from structlog.testing import capture_logs

from app.accounts.errors import NameTaken
from app.http.callers.area import Area
from app.http.callers.caller import Access
from app.http.rows.endpoint import Call, Endpoint
from app.http.rows.row_errors import UNLISTED
from app.http.serving.server import runner_of
from app.main import application
from app.routes import ROUTES
from app.services import Services
from storage.operators.audit import COMMAND
from storage.postgres.database import TransactionConflict
from streams.log import Gone
from streams.wire.errors import (
    BackendUnavailable,
    Conflict,
    DatabaseError,
    DatabaseUnavailable,
    InvalidOperation,
    InvalidParameter,
    ItemNotFound,
    Unavailable,
)
from tests.running.servers import Server, listening_socket
from vendors.errors import Unreachable

AREA = Area("failing", "Failing", "Rows that fail.", access=Access.PUBLIC, statuses={BackendUnavailable: 502})
CASES: list[tuple[Exception, tuple[type[Exception], ...], int, str | None]] = [
    (ItemNotFound("x"), (), 404, "item_not_found"),
    (ItemNotFound("x"), (ItemNotFound,), 404, None),
    (ItemNotFound("x"), (Gone,), 404, "item_not_found"),
    (Gone(3), (ItemNotFound,), 410, "item_not_found"),
    (Gone(3), (Gone,), 410, None),
    (NameTaken(), (InvalidParameter,), 400, "invalid_parameter"),
    (NameTaken(), (NameTaken,), 400, None),
    (Conflict("x"), (InvalidOperation,), 409, "invalid_operation"),
    (BackendUnavailable("x"), (BackendUnavailable,), 502, None),
    (Unavailable("x"), (BackendUnavailable,), 503, "backend unavailable"),
    (TransactionConflict(), (DatabaseUnavailable,), 503, None),
    (TransactionConflict(), (DatabaseError,), 503, "database"),
    (Unreachable("x", "is not reachable"), (BackendUnavailable,), 502, None),
    (Unreachable("x", "is not reachable"), (), 502, "backend unavailable"),
    (RuntimeError("x"), (), 500, None),
]
"""An error, what its row lists, the status of the response, and the error type that is reported as not listed."""


@pytest.fixture(autouse=True)
def _no_unlisted_error() -> None:
    """These tests answer with unlisted errors on purpose."""


def failing(number: int, error: Exception, errors: Sequence[Any]) -> Endpoint:
    async def handler(call: Call) -> None:
        """Fail."""
        raise error

    return Endpoint("GET", f"/failing/{number}", handler, AREA, errors=tuple(errors))


def counted() -> dict[tuple[str, str], float]:
    samples = UNLISTED.collect()[0].samples
    return {(sample.labels["endpoint"], sample.labels["error_type"]): sample.value for sample in samples}


@asynccontextmanager
async def serving(services: Services, *rows: Endpoint) -> AsyncIterator[str]:
    runner = runner_of(application(services, rows), shutdown_timeout_s=1)
    await runner.setup()
    try:
        with listening_socket() as listener:
            await web.SockSite(runner, listener).start()
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        await runner.cleanup()


async def test_an_error_that_the_row_does_not_list_is_logged_and_counted(services: Services) -> None:
    rows = [failing(number, error, errors) for number, (error, errors, _, _) in enumerate(CASES)]
    async with serving(services, *rows) as url, ClientSession() as http:
        for row, (_, _, status, reported) in zip(rows, CASES, strict=True):
            before = counted()
            with capture_logs() as lines:
                async with http.get(url + row.path) as response:
                    assert response.status == status
            expected = [] if reported is None else [(row.path, reported)]
            logged = [line for line in lines if line["event"] == "response.unlisted_error"]
            assert [(line["route"], line["error_type"]) for line in logged] == expected
            assert {line["log_level"] for line in logged} <= {"warning"}
            assert [key for key, count in counted().items() if count != before.get(key, 0)] == expected


async def test_an_error_event_that_the_row_does_not_list_is_logged(server: Server) -> None:
    _, token = await server.login()
    listed = next(row for row in ROUTES if row.path == "/bp/ai/audio/tts")
    assert listed.docs.stream is not None
    unlisting = replace(listed, docs=replace(listed.docs, stream=replace(listed.docs.stream, errors=())))
    account = {"platform": "local_audio", "base_url": "http://127.0.0.1:9/v1"}
    await server.services.configs.put("default", "vendor_accounts", "far", account, author="test", origin=COMMAND)
    await server.services.configs.put(
        "default", "speech", "calm", {"account": "far", "model": "espeak"}, author="test", origin=COMMAND
    )
    body, headers = {"text": "Hello", "strategies": ["calm"]}, {"X-Service-Session-Token": token}
    with capture_logs() as lines:
        async with serving(server.services, unlisting) as url:
            async with server.http.post(url + unlisting.path, json=body, headers=headers) as response:
                assert b"event: error" in await response.read()
            await asyncio.sleep(0)
    logged = [line for line in lines if line["event"] == "response.unlisted_error"]
    assert [(line["route"], line["error_type"]) for line in logged] == [(unlisting.path, "all_strategies_failed")]
