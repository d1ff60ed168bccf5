"""A door in front of Valkey that a test can shut."""

import asyncio
from asyncio import StreamReader, StreamWriter, open_unix_connection, start_unix_server
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from app.settings import Settings
from deploy.stores import Stores
from streams.tasks import background


class Door:
    def __init__(self, path: Path, target: str) -> None:
        self.url = f"unix://{path}"
        self._path = path
        self._target = target.removeprefix("unix://")
        self._ways: set[StreamWriter] = set()
        self._empty = asyncio.Event()
        self._empty.set()
        self._server: asyncio.AbstractServer | None = None
        self.flowing = asyncio.Event()
        """While it is not set, nothing passes: connections open, and no command is answered."""
        self.flowing.set()

    async def open(self) -> None:
        self._server = await start_unix_server(self._pass, self._path)

    async def shut(self) -> None:
        """Cut who is inside, and let nobody in."""
        if self._server is not None:
            self._server.close()
            self._path.unlink(missing_ok=True)
            for way in list(self._ways):
                way.transport.abort()
            await self._server.wait_closed()
            await self._empty.wait()
            self._server = None

    async def _pass(self, reader: StreamReader, writer: StreamWriter) -> None:
        to_valkey = None
        self._ways.add(writer)
        self._empty.clear()
        try:
            from_valkey, to_valkey = await open_unix_connection(self._target)
            async with background(self._copy(from_valkey, writer)):
                await self._copy(reader, to_valkey)
        finally:
            for end in filter(None, (writer, to_valkey)):
                end.transport.abort()
            self._ways.remove(writer)
            if not self._ways:
                self._empty.set()

    async def _copy(self, reader: StreamReader, writer: StreamWriter) -> None:
        with suppress(ConnectionError):
            while piece := await reader.read(65_536):
                await self.flowing.wait()
                writer.write(piece)
                await writer.drain()


@asynccontextmanager
async def door_to(target: str, path: Path) -> AsyncIterator[Door]:
    door = Door(path, target)
    await door.open()
    try:
        yield door
    finally:
        await door.shut()


@pytest.fixture
async def door(stores: Stores, tmp_path: Path) -> AsyncIterator[Door]:
    """A door in front of the Valkey of the test. `settings` must be imported with it."""
    async with door_to(stores.redis_url, tmp_path / "v.sock") as opened:
        yield opened
        opened.flowing.set()


@pytest.fixture
def settings(settings: Settings, door: Door) -> Settings:
    """All servers reach Valkey through the door."""
    return replace(settings, redis_url=door.url)
