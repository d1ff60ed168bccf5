"""A TCP proxy between browser and server that breaks connections and alters bytes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from yarl import URL

_PIECE_BYTES = 1 << 16


@dataclass
class UnreliableProxy:
    target: URL
    url: str = ""
    cuts: list[int] = field(default_factory=list)
    """Numbers of bytes from the server after which all connections break, one number per break."""
    altered: tuple[bytes, bytes] | None = None
    """Bytes from the server to replace, and their replacement of the same length."""
    down: bool = False
    """Whether new connections are refused."""
    refused: int = 0
    """The number of connections that were refused."""
    _writers: list[asyncio.StreamWriter] = field(default_factory=list)

    async def connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.down:
            self.refused += 1
            writer.transport.abort()
            return
        server_reader, server_writer = await asyncio.open_connection(self.target.host, self.target.port)
        self._writers += [writer, server_writer]
        with suppress(ConnectionError):
            await asyncio.gather(_forward(reader, server_writer), self._forward_response(server_reader, writer))

    async def _forward_response(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
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
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()


async def _forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(_PIECE_BYTES):
        writer.write(data)
        await writer.drain()
    writer.close()


@asynccontextmanager
async def proxy_to(url: str) -> AsyncIterator[UnreliableProxy]:
    """Run a proxy to the server at `url`."""
    proxy = UnreliableProxy(URL(url))
    server = await asyncio.start_server(proxy.connect, "127.0.0.1")
    proxy.url = "http://{}:{}".format(*server.sockets[0].getsockname())
    try:
        yield proxy
    finally:
        server.close()
        proxy.cut()
        await server.wait_closed()
