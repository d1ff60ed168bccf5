"""A vendor at a real socket whose responses are set by the test."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web

from streams.wire.codec import dumps

Respond = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class Seen:
    path: str
    headers: Mapping[str, str]
    body: bytes
    peer: tuple[str, int]
    query: Mapping[str, str]


@dataclass
class Upstream:
    """Sends `answers` in turn, and then repeats the last one."""

    url: str = ""
    answers: list[Respond] = field(default_factory=list)
    seen: list[Seen] = field(default_factory=list)
    left: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a caller closes the connection before the end of its response."""

    def respond_with(self, *answers: Respond) -> None:
        self.answers[:] = answers

    async def serve(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        peer = request.transport.get_extra_info("peername")
        self.seen.append(Seen(request.path, request.headers, body, peer, request.query))
        answer = self.answers[min(len(self.seen), len(self.answers)) - 1]
        try:
            return await answer(request)
        except (asyncio.CancelledError, ConnectionError):
            self.left.set()
            raise

    @property
    def connections(self) -> int:
        return len({seen.peer for seen in self.seen})


@asynccontextmanager
async def running_upstream() -> AsyncIterator[Upstream]:
    upstream = Upstream()
    app = web.Application(client_max_size=1 << 26)
    app.router.add_route("*", "/{path:.*}", upstream.serve)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    upstream.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield upstream
    finally:
        await runner.cleanup()


def plain(status: int = 200, body: bytes = b"", **headers: str) -> Respond:
    """Return a complete response. Underscores in the names of `headers` become hyphens."""

    async def answer(_request: web.Request) -> web.StreamResponse:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return web.Response(status=status, body=body, headers=named)

    return answer


def refusing(status: int, message: str = "no", code: str | None = None, **headers: str) -> Respond:
    """Return an error response in OpenAI's format."""
    body = dumps({"error": {"message": message, "type": "some_error", "param": None, "code": code}})
    return plain(status, body, Content_Type="application/json", **headers)


def streaming(
    pieces: Iterable[bytes],
    *,
    end: Callable[[web.Request], Awaitable[None]] | None = None,
    status: int = 200,
    content_type: str = "text/event-stream",
    apart: bool = False,
) -> Respond:
    """Return a response in pieces. `end` replaces its normal end. `apart`: each piece is sent separately."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(status=status, headers={"Content-Type": content_type})
        await response.prepare(request)
        for piece in pieces:
            await response.write(piece)
            if apart:
                await asyncio.sleep(0.01)
        if end is not None:
            await end(request)
        return response

    return answer


async def cut(request: web.Request) -> None:
    """Close the connection before the end of the response."""
    request.transport.close()


async def hold(_request: web.Request) -> None:
    """Keep the connection open without sending anything."""
    await asyncio.Event().wait()
