"""A proxy that speaks TLS and forwards to a server without TLS."""

import asyncio
import ssl
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from streams.tasks import background

Connect = Callable[[], Awaitable[tuple[StreamReader, StreamWriter]]]


@asynccontextmanager
async def tls_proxy(tls: ssl.SSLContext, connect: Connect) -> AsyncIterator[int]:
    """Accept connections at a port of this machine, which is yielded, and forward each to one of `connect`."""
    serving: set[asyncio.Task[None]] = set()

    async def serve(reader: StreamReader, writer: StreamWriter) -> None:
        with suppress(OSError):
            from_server, to_server = await connect()
            try:
                async with background(_copy(from_server, writer)):
                    await _copy(reader, to_server)
            finally:
                for end in (writer, to_server):
                    end.transport.abort()

    def accept(reader: StreamReader, writer: StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(serve(reader, writer))
        serving.add(task)
        task.add_done_callback(serving.discard)

    async with await asyncio.start_server(accept, "127.0.0.1", 0, ssl=tls) as server:
        yield server.sockets[0].getsockname()[1]
        for task in serving:
            task.cancel()
        if serving:
            await asyncio.wait(serving)


async def _copy(reader: StreamReader, writer: StreamWriter) -> None:
    with suppress(OSError):
        while piece := await reader.read(65_536):
            if writer.is_closing():
                return
            writer.write(piece)
            await writer.drain()
        writer.close()
