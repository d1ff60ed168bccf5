"""A vendor of OpenAI's protocol that costs next to nothing: `python -m bench.upstream` prints its port.

The model of a request says how it is answered: `50x20` is 50 deltas, one every 20 ms from the first byte of the
answer on; `50x0` all at once; `held` nothing until somebody asks for `POST /release`, then one delta.
"""

import asyncio
import re
import sys
import time
from typing import cast

import uvloop

_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
_MODEL = re.compile(rb'"model": *"(?:(\d+)x(\d+)|held)"')
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
_RELEASED = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
_UNKNOWN = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
_DELTA = (
    b'data: {"id":"chatcmpl-bench","object":"chat.completion.chunk","created":1700000000,"model":"bench",'
    b'"choices":[{"index":0,"delta":{"content":" %d"},"finish_reason":null}]}\n\n'
)
_STOP = (
    b'data: {"id":"chatcmpl-bench","object":"chat.completion.chunk","created":1700000000,"model":"bench",'
    b'"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
    b'data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":50}}\n\n'
    b"data: [DONE]\n\n"
)


def _chunk(body: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(body), body)


_END = _chunk(_STOP) + b"0\r\n\r\n"


class Upstream(asyncio.Protocol):
    """One kept connection. A delta's text is the clock at its writing: a space and nanoseconds."""

    def __init__(self, held: set["Upstream"]) -> None:
        self._held = held

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._input = bytearray()
        self._left = 0

    def connection_lost(self, exc: Exception | None) -> None:
        self._held.discard(self)
        if self._timer is not None:
            self._timer.cancel()

    def data_received(self, data: bytes) -> None:
        self._input += data
        head = self._input.find(b"\r\n\r\n")
        if head < 0:
            return
        length = _LENGTH.search(self._input, 0, head)
        end = head + 4 + (int(length[1]) if length else 0)
        if len(self._input) >= end:
            request = bytes(self._input[:end])
            del self._input[:end]
            self._answer(request)

    def _answer(self, request: bytes) -> None:
        model = _MODEL.search(request)
        if request.startswith(b"POST /release "):
            self._transport.write(_RELEASED)
            while self._held:
                self._held.pop().play(1, 0)
        elif model is None:
            self._transport.write(_UNKNOWN)
        elif model[1] is None:
            self._transport.write(_HEAD)
            self._held.add(self)
        else:
            self._transport.write(_HEAD)
            self.play(int(model[1]), int(model[2]) / 1000)

    def play(self, deltas: int, every_s: float) -> None:
        """Write one delta after another; without a pause each is still a write of its own."""
        self._left, self._every_s, self._due = deltas, every_s, self._loop.time()
        self._next()

    def _next(self) -> None:
        self._transport.write(_chunk(_DELTA % time.monotonic_ns()))
        self._left -= 1
        if not self._left:
            self._transport.write(_END)
        elif self._every_s:
            self._due += self._every_s
            self._timer = self._loop.call_at(self._due, self._next)
        else:
            self._loop.call_soon(self._next)


async def main() -> None:
    held: set[Upstream] = set()
    server = await asyncio.get_running_loop().create_server(lambda: Upstream(held), "127.0.0.1", 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    sys.exit(uvloop.run(main()))
