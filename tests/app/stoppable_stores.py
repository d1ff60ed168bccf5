"""A server whose PostgreSQL and Valkey a test can stop."""

import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from app.services import open_services
from tests.app.valkey_proxy import ValkeyProxy, postgresql_proxy_to, valkey_proxy_to
from tests.running.servers import Databases, Server, listening_socket, running_server, settings_of
from tests.waiting import until


@dataclass(frozen=True)
class Stoppable:
    server: Server
    database: ValkeyProxy
    valkey: ValkeyProxy


@asynccontextmanager
async def open_stoppable(databases: Databases, data_dir: Path, **settings: Any) -> AsyncIterator[Stoppable]:
    """Run a server with the configs of a development server. `settings`: fields of its settings."""
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="parley-"))  # A short path for the socket.
        url = await stack.enter_async_context(databases.new(seeded=True))
        database, url = await stack.enter_async_context(postgresql_proxy_to(url))
        valkey = await stack.enter_async_context(
            valkey_proxy_to(databases.stores.redis_url, Path(folder, "valkey"))
        )
        listener = stack.enter_context(listening_socket())
        given = settings_of(
            databases.stores, url, listener.getsockname()[1], data_dir, redis_url=valkey.url, **settings
        )
        given = replace(given, database_url=url, database_direct_url=None)
        services = await stack.enter_async_context(open_services(given))
        server = await stack.enter_async_context(running_server(services, listener))
        yield Stoppable(server, database, valkey)


@asynccontextmanager
async def stopped(store: ValkeyProxy, ask: Callable[[], Awaitable[tuple[int, Any]]]) -> AsyncIterator[None]:
    """Stop a store during the block. After it, wait until `ask` succeeds again."""
    await store.stop()
    try:
        yield
    finally:
        await store.start()

        async def succeeds() -> bool:
            return (await ask())[0] == 200

        await until(succeeds)
