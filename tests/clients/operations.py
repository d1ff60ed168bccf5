"""Which operations of the interface a client calls: a server that records requests, and the OpenAPI document."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from aiohttp import web

from app.http.openapi.document import openapi
from app.routes import INTERFACE
from tests.clients.cases import cases

_GROUPS = ("Apps", "App servers")


@cache
def document() -> dict[str, Any]:
    return openapi(INTERFACE, public_url="http://127.0.0.1")


def expected() -> set[str]:
    """Return all operations that apps and app servers call, except for those that the clients leave out."""
    tags = {tag for group in document()["x-tagGroups"] if group["name"] in _GROUPS for tag in group["tags"]}
    known = {
        f"{verb.upper()} {path}"
        for path, found in document()["paths"].items()
        for verb, operation in found.items()
        if tags.intersection(operation["tags"])
    }
    left_out = cases("operations").keys()
    assert left_out <= known
    return known - left_out


@dataclass
class Recorder:
    url: str = ""
    requests: set[tuple[str, str]] = field(default_factory=set)

    def operations(self) -> set[str]:
        """Return the operations of the requests. A request that is none of an operation is returned as it is."""
        return {self._operation(method, path) for method, path in self.requests}

    def _operation(self, method: str, path: str) -> str:
        fitting = [
            known
            for known, found in document()["paths"].items()
            if method.lower() in found and re.fullmatch(re.sub(r"\\{\w+\\}", "[^/]+", re.escape(known)), path)
        ]
        # A word of a path is meant before a parameter at the same place.
        return f"{method} {min(fitting, key=lambda known: known.count('{'), default=path)}"

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Begin a stream, and refuse everything else."""
        await request.read()
        self.requests.add((request.method, request.rel_url.raw_path))
        if request.method == "POST" and request.path.endswith(("/ai/conversation", "/ai/audio/tts")):
            headers = {"Content-Type": "text/event-stream", "X-Service-Stream-Id": "s" * 32}
            response = web.StreamResponse(headers=headers)
            await response.prepare(request)
            for number, name in ((1, b"start"), (2, b"something")):
                await response.write(b'id: %d\nevent: %b\ndata: {"content":"","timestamp":1}\n\n' % (number, name))
            return response
        error = {"error_type": "item_not_found", "message": "item_not_found: nothing is here"}
        return web.json_response({"error": error}, status=404)


@asynccontextmanager
async def recording_server() -> AsyncIterator[Recorder]:
    recorder = Recorder()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", recorder.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    recorder.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield recorder
    finally:
        await runner.cleanup()
