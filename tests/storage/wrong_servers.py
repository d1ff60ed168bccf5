"""Servers that are not the expected store, and a host name that no server has."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

UNKNOWN_HOST = ".".join(["x" * 63] * 4) + ".invalid"
"""Longer than a name in the DNS may be, so that the resolver refuses it without asking a server."""
_TLS_REQUEST = 80877103
_OF_HTTP = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


@asynccontextmanager
async def wrong_servers() -> AsyncIterator[dict[str, int]]:
    """Yield the ports of a server that never answers (`silent`), one for HTTP, and one that closes connections."""
    async with AsyncExitStack() as stack:
        yield {
            name: await stack.enter_async_context(_serving(answer))
            for name, answer in {"silent": None, "http": _OF_HTTP, "closing": b""}.items()
        }


@asynccontextmanager
async def refusing_passwords() -> AsyncIterator[int]:
    """Yield the port of a server that refuses each login in PostgreSQL's protocol (its manual, 54.2.1 and 54.8)."""
    fields = b"SFATAL\0VFATAL\0C28P01\0Mpassword authentication failed\0\0"

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if int.from_bytes((await reader.read(8))[4:]) == _TLS_REQUEST:
            writer.write(b"N")
            await reader.read(8)
        writer.write(b"E" + (len(fields) + 4).to_bytes(4) + fields)
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1") as server:
        yield server.sockets[0].getsockname()[1]


@asynccontextmanager
async def _serving(answer: bytes | None) -> AsyncIterator[int]:
    """Yield the port of a server that sends `answer` after a client's first byte, and closes the connection."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        if answer is None:
            await reader.read()
        else:
            writer.write(answer)
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1") as server:
        yield server.sockets[0].getsockname()[1]
