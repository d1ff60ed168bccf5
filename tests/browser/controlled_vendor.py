"""A vendor at a real socket whose answers a test sends word by word. It transcribes audio to its duration.

It assesses each reading as the test says, in the form of vendor A's detailed result.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from streams.audio.durations import duration_s
from streams.audio.signatures import WAV
from streams.wire.codec import dumps


@dataclass
class ControlledVendor:
    url: str = ""
    words: asyncio.Queue[str] = field(default_factory=asyncio.Queue)
    """The words to send. An empty one ends the answer."""
    disconnected: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the client disconnects before the end of the answer."""
    assessment: dict[str, Any] = field(default_factory=dict)
    """The fields `text` and `raw_data` of the next assessments."""
    hears: asyncio.Event = field(default_factory=asyncio.Event)
    """While it is not set, no audio is transcribed."""

    def __post_init__(self) -> None:
        self.hears.set()

    def send(self, *words: str) -> None:
        for word in words:
            self.words.put_nowait(word)

    def finish(self) -> None:
        self.words.put_nowait("")

    async def chat(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        try:
            while word := await self.words.get():
                await response.write(b"data: %b\n\n" % dumps({"choices": [{"delta": {"content": word}}]}))
        except (asyncio.CancelledError, ConnectionError):
            self.disconnected.set()
            raise
        await response.write(b"data: [DONE]\n\n")
        return response

    async def transcribe(self, request: web.Request) -> web.Response:
        await self.hears.wait()
        form = await request.post()
        wav = form["file"].file.read()
        transcript = f"{duration_s(wav, WAV):.1f} seconds"
        return web.json_response({"text": "" if form["model"] == "silent" else transcript})

    async def assess(self, request: web.Request) -> web.Response:
        await request.post()
        return web.json_response({**self.assessment, "usage": {"type": "duration", "seconds": 3}})


@asynccontextmanager
async def running_controlled_vendor() -> AsyncIterator[ControlledVendor]:
    vendor = ControlledVendor()
    app = web.Application(client_max_size=1 << 24)
    app.router.add_post("/v1/chat/completions", vendor.chat)
    app.router.add_post("/v1/audio/transcriptions", vendor.transcribe)
    app.router.add_post("/v1/audio/assessments", vendor.assess)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    vendor.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    try:
        yield vendor
    finally:
        await runner.cleanup()
