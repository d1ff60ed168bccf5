"""HTTP servers that answer each connection with a function that sends raw bytes."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from vendors.http.http1.client import Http1Client
from vendors.http.http1.response import Response

Play = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

WHOLE = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@asynccontextmanager
async def requested(http1: Http1Client, url: str, **fields: Any) -> AsyncIterator[Response]:
    given = {"method": "POST", "headers": {}, "body": b"question", "connect_s": 5, "repeatable": True, **fields}
    answer = await http1.send(url, **given)
    try:
        yield answer
    finally:
        await answer.aclose()


async def body(answer: Response) -> bytes:
    whole = b""
    while piece := await answer.read():
        whole += piece
    return whole


async def ask(http1: Http1Client, url: str, **fields: Any) -> bytes:
    async with requested(http1, url, **fields) as answer:
        return await body(answer)


class Vendor:
    """Sends `answers` in turn, and then repeats the last one. `None` closes the connection."""

    def __init__(self, *answers: bytes | None) -> None:
        self.answers = answers
        self.requests: list[tuple[int, bytes]] = []
        """The requests, each with the number of its connection."""
        self.connections = 0
        self.left = asyncio.Event()

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        number = self.connections
        while True:
            try:
                requested = await request(reader)
            except asyncio.IncompleteReadError:
                self.left.set()
                raise
            self.requests.append((number, requested))
            answer = self.answers[min(len(self.requests), len(self.answers)) - 1]
            if answer is None:
                return
            writer.write(answer)


@asynccontextmanager
async def played(play: Play, *, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """Run a server and yield its URL. `play` answers each connection, which is closed when `play` returns."""
    async with asyncio.TaskGroup() as tasks:
        running: set[asyncio.Task[None]] = set()

        def begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            running.add(tasks.create_task(one(reader, writer)))

        async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                await play(reader, writer)
            except (ConnectionError, asyncio.IncompleteReadError):
                pass
            finally:
                writer.close()

        server = await asyncio.start_server(begin, "127.0.0.1", 0, ssl=tls)
        try:
            yield f"http{'s' if tls else ''}://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        finally:
            server.close()
            for task in running:
                task.cancel()


async def request(reader: asyncio.StreamReader) -> bytes:
    """Return the head and the body of a request with `Content-Length`."""
    head = await reader.readuntil(b"\r\n\r\n")
    _, given, length = head.partition(b"Content-Length: ")
    body = await reader.readexactly(int(length.split(b"\r\n", 1)[0])) if given else b""
    return head + body


async def gone(reader: asyncio.StreamReader) -> None:
    """Wait until the caller has disconnected, and ignore what it sends."""
    try:
        while await reader.read(1 << 16):
            pass
    except ConnectionError:
        pass
