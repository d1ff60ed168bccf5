"""A server whose responses are those of a case of `clients/cases/streams.json`, or a transcript."""

import base64
import hashlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from streams.wire.codec import dumps

BRIEF = {"events": [[1, "start", "start"], [2, "end", {"finish_reason": "stop", "digest": None}]]}
"""A turn without words, or a speech without sound."""
_STREAM_ID = "0" * 32


@dataclass
class ScriptedServer:
    responses: list[dict[str, Any]]
    url: str = ""
    asked: list[str] = field(default_factory=list)
    """The method of each request, with its `Last-Event-ID`."""
    keys: set[str | None] = field(default_factory=set)
    """The values of `Idempotency-Key`."""
    spoken: bytes = b""
    """The body of a turn whose end of speech the server has heard."""
    _output: dict[int, tuple[str, bytes]] = field(default_factory=dict)
    """The text and the bytes of each event that the digest covers, by its id."""

    async def answer(self, request: web.Request) -> web.StreamResponse:
        case = self.responses[len(self.asked)]
        self.asked.append(f"{request.method} {request.headers.get('Last-Event-ID', '')}".strip())
        if request.method == "POST":
            self.keys.add(request.headers.get("Idempotency-Key"))
        if not any(name == "end_of_speech" for _, name, _ in case.get("events", ())):
            await request.read()
        if "body" in case:
            return web.Response(text=case["body"], status=case["status"], headers=case.get("headers"))
        if "error" in case:
            return web.json_response({"error": case["error"]}, status=case["status"])
        headers = {"Content-Type": "text/event-stream", "X-Service-Stream-Id": _STREAM_ID}
        response = web.StreamResponse(headers=headers)
        await response.prepare(request)
        for event_id, name, content in case["events"]:
            await response.write(self._frame(event_id, name, content))
            if name == "end_of_speech":
                self.spoken = await request.read()
        if not case["events"] or case["events"][-1][1] not in {"end", "error"}:
            assert request.transport is not None
            request.transport.close()
        return response

    async def cancel(self, request: web.Request) -> web.Response:
        self.asked.append(request.method)
        return web.json_response({})

    def _frame(self, event_id: int | None, name: str, content: Any) -> bytes:
        if name == "end" and content["digest"] is None:
            content = content | {"digest": self._digest()}
        if event_id is not None and name == "assistant_output_chunk":
            self._output[event_id] = (content.get("text", ""), content.get("text", "").encode())
        elif event_id is not None and name in {"assistant_output_audio_chunk", "audio_chunk"}:
            self._output[event_id] = ("", base64.b64decode(content["audio"]))
        head = b"" if event_id is None else b"id: %d\n" % event_id
        return b"%bevent: %b\ndata: %b\n\n" % (head, name.encode(), dumps({"content": content, "timestamp": 1}))

    def _digest(self) -> dict[str, Any]:
        output = [self._output[event_id] for event_id in sorted(self._output)]
        return {
            "chars": sum(len(text) for text, _ in output),
            "sha256": hashlib.sha256(b"".join(sent for _, sent in output)).hexdigest(),
        }


@dataclass(frozen=True)
class Asked:
    target: str
    """The path and the query as they were sent."""
    headers: Mapping[str, str]
    body: bytes


@asynccontextmanager
async def recording_server() -> AsyncIterator[tuple[str, list[Asked]]]:
    """A server that answers each request with an empty object. Yields its address and what it was asked."""
    asked: list[Asked] = []

    async def answer(request: web.Request) -> web.Response:
        asked.append(Asked(request.raw_path, request.headers, await request.read()))
        return web.json_response({})

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}", asked
    finally:
        await runner.cleanup()


@asynccontextmanager
async def scripted_server(responses: list[dict[str, Any]]) -> AsyncIterator[ScriptedServer]:
    server = ScriptedServer(responses)
    app = web.Application()
    app.router.add_post("/bp/ai/conversation", server.answer)
    app.router.add_post("/bp/ai/audio/tts", server.answer)
    app.router.add_get(f"/bp/ai/stream/{_STREAM_ID}", server.answer)
    app.router.add_delete(f"/bp/ai/stream/{_STREAM_ID}", server.cancel)
    app.router.add_get("/bp/user/me", server.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield server
    finally:
        await runner.cleanup()
