"""A server that sends the events of a source to its clients."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import ClientSession, web

from streams.events import UserInput, encode
from streams.log import EventLog, Followable
from streams.sse import EventStream, ReaderGone

MANY = 1 << 30


@dataclass
class Source:
    """Serves one log at `/`, and records the outcome for each reader."""

    log: EventLog = field(default_factory=lambda: EventLog(keep_bytes=MANY, lag_bytes=MANY))
    followed: Followable | None = None
    """The follower to send instead of the log."""
    send_timeout_s: float = 5
    ping_after_s: float = 5
    port: int = 0
    outcomes: asyncio.Queue[str] = field(default_factory=asyncio.Queue)
    peers: list[tuple[str, int]] = field(default_factory=list)
    transports: list[asyncio.Transport] = field(default_factory=list)

    async def say(self, text: str) -> None:
        await self.log.append(encode(UserInput(text), self.log.last_id + 1, 1))

    def end(self) -> None:
        self.log.finish(encode(UserInput("end"), self.log.last_id + 1, 1))

    async def answer(self, request: web.Request) -> web.StreamResponse:
        response = EventStream(
            {"X-Service-Stream-Id": "s1"}, send_timeout_s=self.send_timeout_s, ping_after_s=self.ping_after_s
        )
        self.peers.append(request.transport.get_extra_info("peername"))
        self.transports.append(request.transport)
        try:
            await response.prepare(request)
            await response.send_all(self.followed or self.log, int(request.query.get("after", "0")))
        except ReaderGone:
            self.outcomes.put_nowait("gone")
        else:
            self.outcomes.put_nowait("sent")
        return response

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"


@asynccontextmanager
async def running(source: Source) -> AsyncIterator[ClientSession]:
    app = web.Application()
    app.router.add_route("*", "/", source.answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    source.port = runner.addresses[0][1]
    try:
        async with ClientSession() as http:
            yield http
    finally:
        await runner.cleanup()


@asynccontextmanager
async def connected(
    source: Source, head: bytes = b"", *, receive_bytes: int = 4096
) -> AsyncIterator[socket.socket]:
    """Yield a client that receives almost nothing unless the test reads from it."""
    loop = asyncio.get_running_loop()
    with socket.socket() as client:
        client.setblocking(False)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        await loop.sock_connect(client, ("127.0.0.1", source.port))
        await loop.sock_sendall(client, b"GET / HTTP/1.1\r\nHost: a\r\n%b\r\n" % head)
        yield client


async def outcome(source: Source) -> str:
    async with asyncio.timeout(5):
        return await source.outcomes.get()
