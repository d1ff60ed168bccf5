"""A failure during a stream closes the connection. No error envelope follows headers that were sent."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass

import pytest
from aiohttp import web
from structlog.testing import capture_logs

from app.http.serving.server import runner_of
from streams.log import Following, Gone, Push, Ready
from streams.sse import EventStream
from tests.waiting import passes

FRAMES = b"id: 1\n\n"
CHUNK = b"7\r\nid: 1\n\n\r\n"


@dataclass(frozen=True)
class Faulty:
    """Sends one frame if it `speaks`, waits until the headers are sent, and fails."""

    error: Exception
    speaks: bool

    def follow(self, after: int, *, idle_s: float, push: Push | None = None) -> Following:
        return self._follow()

    async def _follow(self) -> AsyncGenerator[Ready]:
        if self.speaks:
            yield Ready(1, FRAMES, final=False)
        await passes()
        raise self.error

    async def answer(self, request: web.Request) -> web.StreamResponse:
        response = EventStream({}, send_timeout_s=5, ping_after_s=5)
        await response.prepare(request)
        await response.send_all(self, 0)
        return response


async def answered(source: Faulty) -> bytes:
    """Return everything that a server that streams `source` sends until it closes the connection."""
    app = web.Application()
    app.router.add_get("/", source.answer)
    runner = runner_of(app, shutdown_timeout_s=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        reader, writer = await asyncio.open_connection(*runner.addresses[0][:2])
        seen = b""
        try:
            writer.write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            async with asyncio.timeout(5):
                while piece := await reader.read(65_536):
                    seen += piece
        except ConnectionResetError:
            pass  # A cut may cause this error.
        finally:
            writer.close()
        return seen
    finally:
        await runner.cleanup()


@pytest.mark.parametrize("speaks", [False, True])
@pytest.mark.parametrize(
    ("error", "logged"),
    [(RuntimeError("it broke"), ["request.crashed"]), (Gone(1), [])],
)
async def test_stream_that_fails_after_its_head_is_cut_without_an_envelope(
    error: Exception, logged: list[str], *, speaks: bool
) -> None:
    with capture_logs() as lines:
        head, _, body = (await answered(Faulty(error, speaks))).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert body == (CHUNK if speaks else b"")
    assert [line["event"] for line in lines if line["log_level"] == "error"] == logged
