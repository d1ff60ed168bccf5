"""The barest relay that aiohttp and uvloop allow: `python -m bench.baseline URL` prints its port.

It is there to measure beside. The vendor's events are parsed, framed as ours and written, all of a read in one
write. It knows no users, keeps nothing, admits everybody, and a client who leaves takes the stream along.
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


def _frame(number: int, name: bytes, content: object) -> bytes:
    return _EVENT % (number, name, dumps({"content": content, "timestamp": time.time_ns() // 1_000_000}))


class Relay:
    def __init__(self, http: ClientSession, url: str) -> None:
        self._http = http
        self._url = f"{url}/v1/chat/completions"

    async def converse(self, request: web.Request) -> web.StreamResponse:
        """A turn: the name of the strategy is the model that the vendor is asked for."""
        raw, _, text = (await request.read()).partition(b"}")
        model = loads(raw + b"}")["strategies"][0]
        asked = {"model": model, "stream": True, "messages": [{"role": "user", "content": text.decode()}]}
        headers = {"Content-Type": "application/json"}
        async with self._http.post(self._url, data=dumps(asked), headers=headers) as answer:
            response = web.StreamResponse(headers=_HEADERS)
            await response.prepare(request)
            await response.write(_frame(1, b"start", "start"))
            number, partial = 1, b""
            async for piece in answer.content.iter_any():
                *events, partial = (partial + piece).split(b"\n\n")
                frames = []
                for event in events:
                    data = event[6:]  # behind `data: `
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


async def main(url: str) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    async with ClientSession(connector=TCPConnector(limit=0), timeout=ClientTimeout(total=None)) as http:
        app = web.Application()
        app.router.add_post("/bp/ai/conversation", Relay(http, url).converse)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, backlog=4096)
        await site.start()
        gc.freeze()  # as the server does
        gc.set_threshold(50_000, 20, 50)
        print(runner.addresses[0][1], flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1]))
