"""Logins, reads and binds while a store restarts or has lost its data."""

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import asyncpg
import pytest

from app.services import open_services
from deploy.stores import Stores, embedded_stores
from streams.tasks import background
from tests.app.accounts.people import ask, bind, enter, error_type, me, new_user, player
from tests.app.valkey_proxy import postgresql_proxy_to
from tests.running.servers import (
    Databases,
    Server,
    listening_socket,
    new_server,
    open_databases,
    running_server,
    settings_of,
)
from tests.waiting import until

_BEYOND_S = 5
"""How long after an outage every request succeeds again."""
_STEADY = 60
"""How many requests in a row succeed then."""


class Callers:
    """Clients that log in, read a user and bind an identity, one after the other, and what they get."""

    def __init__(self, server: Server) -> None:
        self.answers: Counter[str] = Counter()
        """The number of responses by status and error type."""
        self.in_a_row = 0
        """How many of the last responses were 200."""
        self._server = server

    async def run(self, session: dict[str, str]) -> None:
        while True:
            answers = [
                await ask(self._server, "POST", "/bp/user/login", json={"device": {"id": "a known device"}}),
                await ask(self._server, "POST", "/bp/user/login", json=player("known-player")),
                await ask(self._server, "GET", "/bp/user/me", headers=session),
                await bind(self._server, session, player("bound")),
            ]
            for status, reply in answers:
                good = status == 200 or (status == 400 and error_type(reply) == "account.sp_linked_platform")
                self.in_a_row = self.in_a_row + 1 if good else 0
                self.answers["good" if good else f"{status} {error_type(reply)}"] += 1

    def failed(self) -> int:
        return self.answers.total() - self.answers["good"]


async def check_outage(server: Server, outage) -> None:
    """Let the database be away for a while under load, and check what callers get meanwhile and afterwards."""
    _, session = await new_user(server)
    callers = Callers(server)
    async with background(callers.run(session)), background(callers.run(session)):
        await until(lambda: callers.in_a_row >= _STEADY)
        async with outage():
            await until(lambda: callers.failed() >= 20)
        await until(lambda: callers.in_a_row >= _STEADY, within_s=_BEYOND_S)
        failed = callers.failed()
        await until(lambda: callers.in_a_row >= 3 * _STEADY)
    assert callers.failed() == failed, "after the outage, every request succeeds"
    assert callers.answers.keys() == {"good", "503 database"}


async def test_callers_get_no_500_while_postgresql_is_away_and_its_pools_heal(databases: Databases, tmp_path: Path):
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(databases.new(seeded=True))
        proxy, url = await stack.enter_async_context(postgresql_proxy_to(url))
        listener = stack.enter_context(listening_socket())
        settings = settings_of(databases.stores, url, listener.getsockname()[1], tmp_path)
        services = await stack.enter_async_context(open_services(settings))

        @asynccontextmanager
        async def away() -> AsyncIterator[None]:
            await proxy.stop()
            yield
            await proxy.start()

        await check_outage(await stack.enter_async_context(running_server(services, listener)), away)


@pytest.mark.soak
@pytest.mark.parametrize("way", ["killed", "restarted"])
async def test_callers_get_no_500_beyond_a_restart_of_postgresql(tmp_path: Path, way: str):
    async with (
        embedded_stores(tmp_path / "stores", durable=False) as stores,
        AsyncExitStack() as restarted,  # Outlives the databases, which are dropped at the end.
        open_databases(stores) as databases,
        new_server(databases, tmp_path / "data") as server,
    ):

        @asynccontextmanager
        async def away() -> AsyncIterator[None]:
            process = stores.processes["PostgreSQL"]
            process.kill() if way == "killed" else process.send_signal(2)
            await process.wait()
            yield
            await restarted.enter_async_context(stores.restarts["PostgreSQL"]())
            await _reconnect(stores, databases)

        await check_outage(server, away)


async def _reconnect(stores: Stores, databases: Databases) -> None:
    """Give `databases` a connection with which it can drop the database of the test."""
    object.__setattr__(databases, "admin", await asyncpg.connect(stores.database_url))


@pytest.fixture
def server(guest: Server) -> Server:
    return guest


@pytest.mark.one_valkey
async def test_sessions_outlive_the_loss_of_all_data_in_valkey(server: Server):
    body = player()
    reply, session = await enter(server, body)
    await me(server, session)
    _, ended = await enter(server, body)
    assert (await ask(server, "POST", "/bp/user/logout", headers=ended))[0] == 200
    client, prefix = server.services.valkey.client, server.services.settings.redis_prefix
    keys = [key async for key in client.scan_iter(f"{prefix}*", count=10_000)]
    assert keys
    await client.delete(*keys)
    await client.script_flush()
    assert (await me(server, session))["uid"] == reply["user"]["uid"]
    assert error_type((await ask(server, "GET", "/bp/user/me", headers=ended))[1]) == "account.invalid_session"
    again, _ = await enter(server, body)
    assert again["user"]["uid"] == reply["user"]["uid"]
