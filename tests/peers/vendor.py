"""A vendor with OpenAI's protocol at a real socket. The model name determines its behaviour."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web

from streams.wire.codec import dumps, loads

_PACE_S = 0.002
"""The time between words that arrive separately."""


@dataclass
class Vendor:
    """The models are:

    `say:TEXT` answers word by word. `refuse:STATUS` responds with an error. `reset` aborts the connection. `hang`
    sends no headers, `silent` only headers. `cut:TEXT` closes the connection after TEXT. `error:TEXT` sends an
    error event after it. `empty` sends no text. `many:COUNT` sends COUNT words together, `paced:COUNT` one at a
    time, and `wide:COUNT` words of 1 KiB. `held:COUNT` sends such words one at a time, and then waits until
    `release` is set. `echo` repeats the key. `slow:TEXT` sends TEXT word by word, and then
    waits until `release` is set.
    """

    url: str = ""
    calls: list[dict] = field(default_factory=list)
    request_ids: list[str] = field(default_factory=list)
    prompt_tokens: object = 7
    closed: list[str] = field(default_factory=list)
    """Models whose caller closed the connection before the answer's end."""
    release: asyncio.Event = field(default_factory=asyncio.Event)
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    gone: asyncio.Event = field(default_factory=asyncio.Event)

    async def chat(self, request: web.Request) -> web.StreamResponse:
        body = loads(await request.read())
        self.calls.append(body)
        self.request_ids.append(request.headers.get("X-Request-Id", ""))
        model, _, text = body["model"].partition(":")
        if model == "reset":
            request.transport.abort()
            return web.Response()
        try:
            return await self._play(request, model, text)
        except (asyncio.CancelledError, ConnectionError):
            self.closed.append(body["model"])
            self.gone.set()
            raise

    async def _play(self, request: web.Request, model: str, text: str) -> web.StreamResponse:
        if model == "refuse":
            error = {"error": {"message": "no", "type": "server_error", "code": None}}
            return web.json_response(error, status=int(text))
        if model == "echo":
            given = request.headers["Authorization"]
            return web.json_response({"error": {"message": f"wrong key {given} given"}}, status=401)
        self.begun.set()
        if model == "hang":
            await asyncio.Event().wait()
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for position, word in enumerate(_words(model, text)):
            if model in {"paced", "slow", "held"}:
                await asyncio.sleep(_PACE_S)
            await response.write(_delta({"content": word if position == 0 else f" {word}"}))
        if model == "silent":
            await asyncio.Event().wait()
        if model in {"slow", "held"}:
            await self.release.wait()
        if model == "cut":
            request.transport.close()
            return response
        if model == "error":
            await response.write(b'data: {"error":{"message":"overloaded","type":"server_error"}}\n\n')
            return response
        await response.write(_delta({}, finish_reason="stop"))
        usage = {"prompt_tokens": self.prompt_tokens, "completion_tokens": len(_words(model, text))}
        await response.write(b"data: %b\n\n" % dumps({"choices": [], "usage": usage}))
        await response.write(b"data: [DONE]\n\n")
        return response


def _delta(delta: dict, finish_reason: str | None = None) -> bytes:
    return b"data: %b\n\n" % dumps({"choices": [{"delta": delta, "finish_reason": finish_reason}]})


@asynccontextmanager
async def running_vendor() -> AsyncIterator[Vendor]:
    vendor = Vendor()
    app = web.Application()
    app.router.add_post("/v1/chat/completions", vendor.chat)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    vendor.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    try:
        yield vendor
    finally:
        vendor.release.set()
        await runner.cleanup()


def _words(model: str, text: str) -> list[str]:
    if model in {"silent", "empty"}:
        return []
    if model in {"many", "paced", "wide", "held"}:
        return ["word" * (256 if model in {"wide", "held"} else 1)] * int(text)
    return text.split(" ")
