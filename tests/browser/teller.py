"""A vendor at a real socket that says a word when the test tells it to, and hears how long a sound is."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web

from streams.audio import WAV
from streams.durations import duration_s
from streams.wire.codec import dumps


@dataclass
class Teller:
    url: str = ""
    words: asyncio.Queue[str] = field(default_factory=asyncio.Queue)
    """What it says; an empty one is its last."""
    left: asyncio.Event = field(default_factory=asyncio.Event)
    """Whether it was left before it had said all."""

    def tell(self, *words: str) -> None:
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
            self.left.set()
            raise
        await response.write(b"data: [DONE]\n\n")
        return response

    async def transcribe(self, request: web.Request) -> web.Response:
        form = await request.post()
        wav = form["file"].file.read()
        heard = f"{duration_s(wav, WAV):.1f} seconds"
        return web.json_response({"text": "" if form["model"] == "deaf" else heard})


@asynccontextmanager
async def running_teller() -> AsyncIterator[Teller]:
    teller = Teller()
    app = web.Application(client_max_size=1 << 24)
    app.router.add_post("/v1/chat/completions", teller.chat)
    app.router.add_post("/v1/audio/transcriptions", teller.transcribe)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    teller.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    try:
        yield teller
    finally:
        await runner.cleanup()
