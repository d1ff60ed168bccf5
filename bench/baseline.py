"""A minimal relay on aiohttp and uvloop, to compare Parley with: `python -m bench.baseline URL` prints its port.

The relay parses the vendor's events, encodes them as Parley does and writes all events of one read in one write. It
has no users, no storage and no limits, and a stream ends when its client disconnects. Its response to
`GET /bp/user/me` is a constant, so that it costs no more than aiohttp itself.
"""

import asyncio
import gc
import resource
import sys
import time

import uvloop
from aiohttp import ClientSession, ClientTimeout, TCPConnector, web

from streams.wire.codec import dumps, loads

_EVENT = b"id: %d\nevent: %b\ndata: %b\n\n"
_HEADERS = {"Content-Type": "text/event-stream", "Cache-Control": "no-store"}


_USER = dumps({"user": {"uid": "0" * 32, "name": "", "social_accounts": [{"platform": "device", "id": "0" * 32}]}})


def _frame(number: int, name: bytes, content: object) -> bytes:
    return _EVENT % (number, name, dumps({"content": content, "timestamp": time.time_ns() // 1_000_000}))


class Relay:
    def __init__(self, http: ClientSession, url: str) -> None:
        self._http = http
        self._url = f"{url}/v1/chat/completions"

    async def converse(self, request: web.Request) -> web.StreamResponse:
        """Relay one turn of a conversation. The name of the first strategy is the model of the vendor's request."""
        raw, _, text = (await request.read()).partition(b"}")
        model = loads(raw + b"}")["strategies"][0]
        body = {"model": model, "stream": True, "messages": [{"role": "user", "content": text.decode()}]}
        headers = {"Content-Type": "application/json"}
        async with self._http.post(self._url, data=dumps(body), headers=headers) as upstream:
            response = web.StreamResponse(headers=_HEADERS)
            await response.prepare(request)
            await response.write(_frame(1, b"start", "start"))
            number, partial = 1, b""
            async for piece in upstream.content.iter_any():
                *events, partial = (partial + piece).split(b"\n\n")
                frames = []
                for event in events:
                    data = event[6:]  # Skip `data: `.
                    if data != b"[DONE]" and (choices := loads(data)["choices"]):
                        delta = choices[0]["delta"].get("content")
                        if delta:
                            number += 1
                            content = {"index": 0, "text": delta}
                            frames.append(_frame(number, b"assistant_output_chunk", content))
                if frames:
                    await response.write(b"".join(frames))
            await response.write(_frame(number + 1, b"end", {"finish_reason": "stop"}))
            await response.write_eof()
            return response


async def _user(request: web.Request) -> web.Response:
    return web.Response(body=_USER, content_type="application/json")


async def main(url: str) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    async with ClientSession(connector=TCPConnector(limit=0), timeout=ClientTimeout(total=None)) as http:
        app = web.Application()
        app.router.add_post("/bp/ai/conversation", Relay(http, url).converse)
        app.router.add_get("/bp/user/me", _user)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, backlog=4096)
        await site.start()
        gc.freeze()  # The server does the same.
        gc.set_threshold(50_000, 20, 50)
        print(runner.addresses[0][1], flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1]))
