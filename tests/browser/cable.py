"""A line between a browser and a server that breaks, as networks do."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from yarl import URL

_PIECE_BYTES = 1 << 16


@dataclass
class Cable:
    to: URL
    url: str = ""
    cuts: list[int] = field(default_factory=list)
    """After how many more bytes from the server all connections break, each time."""
    altered: tuple[bytes, bytes] | None = None
    """What of the server's bytes is replaced, and by what of the same length."""
    down: bool = False
    """Whether nobody gets through."""
    _lines: list[asyncio.StreamWriter] = field(default_factory=list)

    async def connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.down:
            writer.transport.abort()
            return
        server_reader, server_writer = await asyncio.open_connection(self.to.host, self.to.port)
        self._lines += [writer, server_writer]
        with suppress(ConnectionError):
            await asyncio.gather(_carry(reader, server_writer), self._carry_back(server_reader, writer))

    async def _carry_back(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(_PIECE_BYTES):
            if self.altered:
                data = data.replace(*self.altered)
            if self.cuts and len(data) >= self.cuts[0]:
                writer.write(data[: self.cuts.pop(0)])
                self.cut()
                return
            if self.cuts:
                self.cuts[0] -= len(data)
            writer.write(data)
            await writer.drain()
        writer.close()

    def cut(self) -> None:
        for line in self._lines:
            line.transport.abort()
        self._lines.clear()


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(_PIECE_BYTES):
        writer.write(data)
        await writer.drain()
    writer.close()


@asynccontextmanager
async def cable_to(url: str) -> AsyncIterator[Cable]:
    """A line to the server at `url`, with an address of its own."""
    cable = Cable(URL(url))
    server = await asyncio.start_server(cable.connect, "127.0.0.1")
    cable.url = "http://{}:{}".format(*server.sockets[0].getsockname())
    try:
        yield cable
    finally:
        server.close()
        cable.cut()
        await server.wait_closed()
