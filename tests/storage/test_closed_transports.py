"""If a transport is closed at any await of a command, its store is unavailable, and the next command succeeds."""

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from hashlib import sha1
from pathlib import Path
from secrets import token_hex
from typing import Any

import pytest
from redis.asyncio.connection import AbstractConnection

from storage.postgres.database import Database, open_database
from storage.postgres.notifications import listen
from storage.valkey.client import Valkey, map_errors
from storage.valkey.opening import open_valkey
from streams.tasks import background
from streams.wire.errors import StoreUnavailable
from tests.closed_transports import ClosingTransports, closing_transports
from tests.peers.certificates import Authority
from tests.peers.tls_proxy import tls_proxy
from tests.running.servers import Stores
from tests.waiting import passes

pytestmark = pytest.mark.one_valkey

CONNECTIONS = 2


@pytest.fixture
async def closing() -> AsyncIterator[ClosingTransports]:
    async with closing_transports() as watching:
        yield watching


async def use_valkey(valkey: Valkey) -> None:
    with map_errors():
        await valkey.call("GET", "a")
        await asyncio.gather(valkey.call("GET", "a"), valkey.call("GET", "b"))
        await valkey.client.get("a")
        async with valkey.client.pipeline(transaction=False) as commands:
            commands.get("a").get("b")
            await commands.execute()


async def use_new_valkey(url: str) -> None:
    async with open_valkey(url) as valkey:
        await use_valkey(valkey)
        await use_valkey(valkey)


async def test_valkey(closing: ClosingTransports, stores: Stores) -> None:
    assert await closing.check(partial(use_new_valkey, stores.redis_url), error=StoreUnavailable)


async def test_valkey_with_kept_connections(closing: ClosingTransports, stores: Stores) -> None:
    async with open_valkey(stores.redis_url) as valkey:
        assert await closing.check(
            partial(use_valkey, valkey), error=StoreUnavailable, healed=partial(use_valkey, valkey)
        )


async def test_valkey_over_tls(closing: ClosingTransports, stores: Stores, tmp_path: Path) -> None:
    authority, path = Authority(tmp_path), stores.redis_url.removeprefix("unix://")
    async with tls_proxy(authority.server("localhost"), partial(asyncio.open_unix_connection, path)) as port:
        url = f"rediss://localhost:{port}?ssl_ca_certs={authority.path}"

        async def use_new() -> None:
            async with open_valkey(url) as valkey:
                with map_errors():
                    await valkey.call("GET", "a")
                    await valkey.client.get("a")

        assert await closing.check(use_new, error=StoreUnavailable)


async def test_valkey_connection_that_is_lost_as_soon_as_it_is_open(
    stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = AbstractConnection.connect

    async def connect_and_lose(connection: Any) -> None:
        await connect(connection)  # type: ignore[no-untyped-call]
        monkeypatch.undo()
        connection._writer.transport.abort()
        await passes(3)

    monkeypatch.setattr(AbstractConnection, "connect", connect_and_lose)
    async with open_valkey(stores.redis_url) as valkey:
        with pytest.raises(StoreUnavailable), map_errors():
            await valkey.call("GET", "a")
        assert await valkey.call("PING") == b"PONG"


def unknown_script(_: str) -> tuple[str, str]:
    """Return a script that Valkey does not know, and its digest."""
    source = f"return '{token_hex()}'"
    return source, sha1(source.encode(), usedforsecurity=False).hexdigest()


async def test_script_that_valkey_does_not_know(
    closing: ClosingTransports, stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("storage.valkey.client._lua", unknown_script)

    async def run(valkey: Valkey) -> None:
        with map_errors():
            assert await valkey.run("any", keys=(), args=())

    async with open_valkey(stores.redis_url) as valkey:
        assert await closing.check(partial(run, valkey), error=StoreUnavailable, healed=partial(run, valkey))


async def test_blocking_command(closing: ClosingTransports, stores: Stores) -> None:
    async def read(valkey: Valkey) -> None:
        with map_errors():
            assert not await valkey.blocking.xread({"absent": 0}, block=10)

    async with open_valkey(stores.redis_url) as valkey:
        assert await closing.check(partial(read, valkey), error=StoreUnavailable, healed=partial(read, valkey))


async def test_subscription(closing: ClosingTransports, stores: Stores) -> None:
    async def receive(valkey: Valkey) -> None:
        with map_errors():
            async with valkey.client.pubsub(ignore_subscribe_messages=True) as pubsub:
                await pubsub.subscribe("news")
                await valkey.client.publish("news", "a")
                async for _ in pubsub.listen():
                    return

    async with open_valkey(stores.redis_url) as valkey:
        assert await closing.check(
            partial(receive, valkey), error=StoreUnavailable, healed=partial(receive, valkey)
        )


async def use_postgres(database: Database) -> None:
    async with database.connection() as conn:
        await conn.fetchval("select 1")
    async with database.transaction() as conn:
        await conn.executemany("select $1::int", [(1,), (2,)])
        async with conn.transaction():
            await conn.fetch("select $1::jsonb", {})


async def test_postgres(closing: ClosingTransports, database_url: str) -> None:
    async def use_new() -> None:
        async with open_database(database_url, max_size=CONNECTIONS, acquire_timeout_s=1) as database:
            await use_postgres(database)
            await database.ping()

    assert await closing.check(use_new, error=StoreUnavailable)


async def test_postgres_with_kept_connections(closing: ClosingTransports, stores: Stores) -> None:
    async def use_all(database: Database) -> None:
        async with database.connection() as one, database.connection() as other:
            await asyncio.gather(one.fetchval("select 1"), other.fetchval("select 1"))

    async with open_database(stores.database_url, max_size=CONNECTIONS, acquire_timeout_s=1) as database:
        command, use_pool = partial(use_postgres, database), partial(use_all, database)
        assert await closing.check(command, error=StoreUnavailable, healed=use_pool)


async def test_notifications(closing: ClosingTransports, stores: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("storage.postgres.notifications._LISTEN_AGAIN_S", 0)
    monkeypatch.setattr("storage.postgres.notifications._CHECK_S", 0)

    async def listen_and_check() -> None:
        checks = asyncio.Semaphore(0)
        listening = listen(stores.database_url, "news", lambda _: None, on_checked=lambda *_: checks.release())
        async with background(listening):
            for _ in range(3):
                await checks.acquire()

    assert not await closing.check(listen_and_check, error=StoreUnavailable)
