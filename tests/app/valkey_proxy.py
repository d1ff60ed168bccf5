"""A proxy in front of Valkey, or of another store at a Unix socket, that a test can stop."""

import asyncio
import tempfile
from asyncio import StreamReader, StreamWriter, open_unix_connection, start_unix_server
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from app.settings import Settings
from deploy.stores import Stores
from streams.tasks import background

_POSTGRESQL_PORT = "5432"


class ValkeyProxy:
    def __init__(self, path: Path, target: str) -> None:
        self.url = f"unix://{path}"
        self._path = path
        self._target = target.removeprefix("unix://")
        self._clients: set[StreamWriter] = set()
        self._empty = asyncio.Event()
        self._empty.set()
        self._server: asyncio.AbstractServer | None = None
        self._stopping = False
        self.flowing = asyncio.Event()
        """While it is not set, connections are accepted, but no data is forwarded."""
        self.flowing.set()
        self._forgotten = asyncio.Event()
        self.delay_s = 0.0
        """How long each reply takes in addition."""

    async def start(self) -> None:
        self._stopping = False
        self._server = await start_unix_server(self._forward, self._path)

    async def stop(self) -> None:
        """Close all connections and refuse new ones."""
        if self._server is not None:
            self._stopping = True
            self._server.close()
            self._path.unlink(missing_ok=True)
            for client in list(self._clients):
                client.transport.abort()
            await self._server.wait_closed()
            await self._empty.wait()
            self._server = None

    def forget_connections(self) -> None:
        """Drop all data of the connections that are open, without closing them. New connections work.

        A firewall does this when it forgets its connections, and both ends seem to be connected still.
        """
        self._forgotten.set()
        self._forgotten = asyncio.Event()

    async def _forward(self, reader: StreamReader, writer: StreamWriter) -> None:
        if self._stopping:  # It was accepted, but this task begins only now.
            writer.transport.abort()
            return
        to_valkey, forgotten = None, self._forgotten
        self._clients.add(writer)
        self._empty.clear()
        try:
            from_valkey, to_valkey = await open_unix_connection(self._target)
            async with background(self._copy(from_valkey, writer, forgotten, delayed=True)):
                await self._copy(reader, to_valkey, forgotten)
        finally:
            for end in filter(None, (writer, to_valkey)):
                end.transport.abort()
            self._clients.remove(writer)
            if not self._clients:
                self._empty.set()

    async def _copy(
        self, reader: StreamReader, writer: StreamWriter, forgotten: asyncio.Event, *, delayed: bool = False
    ) -> None:
        with suppress(ConnectionError):
            while piece := await reader.read(65_536):
                await self.flowing.wait()
                if forgotten.is_set():
                    continue
                if delayed and self.delay_s:
                    await asyncio.sleep(self.delay_s)
                if writer.is_closing():
                    return
                writer.write(piece)
                await writer.drain()
            writer.close()  # The other end has closed its connection.


@asynccontextmanager
async def valkey_proxy_to(target: str, path: Path) -> AsyncIterator[ValkeyProxy]:
    if target.startswith("redis+"):
        pytest.skip("a proxy stands before a single server")
    valkey_proxy = ValkeyProxy(path, target)
    await valkey_proxy.start()
    try:
        yield valkey_proxy
    finally:
        await valkey_proxy.stop()


@asynccontextmanager
async def postgresql_proxy_to(database_url: str) -> AsyncIterator[tuple[ValkeyProxy, str]]:
    """Run a proxy in front of PostgreSQL. Yield it, and the URL of the database through it."""
    query = parse_qs(urlsplit(database_url).query)
    [sockets], [port] = query["host"], query.get("port", [_POSTGRESQL_PORT])
    socket = f".s.PGSQL.{port}"
    with tempfile.TemporaryDirectory(prefix="parley-") as folder:  # A short path for the socket.
        target, path = f"unix://{sockets}/{socket}", Path(folder, socket)
        async with valkey_proxy_to(target, path) as proxy:
            yield proxy, database_url.replace(sockets, folder)


@pytest.fixture
async def valkey_proxy(stores: Stores, tmp_path: Path) -> AsyncIterator[ValkeyProxy]:
    """A proxy in front of the Valkey of the test. `settings` must be imported with it."""
    async with valkey_proxy_to(stores.redis_url, tmp_path / "v.sock") as opened:
        yield opened
        opened.flowing.set()


@pytest.fixture
def settings(settings: Settings, valkey_proxy: ValkeyProxy) -> Settings:
    """All servers connect to Valkey through the proxy."""
    return replace(settings, redis_url=valkey_proxy.url)
