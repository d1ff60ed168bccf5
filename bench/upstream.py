"""A fake vendor with OpenAI's protocol that uses little CPU: `python -m bench.upstream` prints its port.

The model of a request determines the answer. `50x20` sends 50 deltas, one every 20 ms; the first one follows the
head immediately. `50x20w100` sends the first delta after 100 ms. `50x0` sends the deltas as fast as possible, each
in a separate write. `held` sends nothing until a client calls `POST /release`, then one delta. Speech
(`/audio/speech`) is sent in pieces of 100 ms in the same way. Every transcription (`/audio/transcriptions`) has the
same text.
"""

import argparse
import asyncio
import gc
import heapq
import random
import re
import resource
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TextIO, cast

import uvloop

from streams.wire.codec import dumps

_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
_MODEL = re.compile(rb'"model": *"(?:(\d+)x(\d+)(?:w(\d+))?|held)"')
_SAID = re.compile(rb'"(?:content|input)": *"([^"\\]{0,80})')
_OK = b"HTTP/1.1 200 OK\r\n"
_CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"
_EVENTS = _OK + b"Content-Type: text/event-stream\r\n" + _CHUNKED
_SOUND = _OK + b"Content-Type: audio/pcm\r\n" + _CHUNKED
_TRANSCRIPT_BODY = b'{"text":"How are you today?","usage":{"type":"duration","seconds":2}}'
_TRANSCRIPT = (
    _OK + b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(_TRANSCRIPT_BODY) + _TRANSCRIPT_BODY
)
_EMPTY = _OK + b"Content-Length: 0\r\n\r\n"
_UNKNOWN = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
_BROKEN = b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n"
_OPENING = (
    b'data: {"id":"chatcmpl-bench","object":"chat.completion.chunk","created":1700000000,"model":"bench",'
    b'"choices":[{"index":0,"delta":{"content":" '
)
_CLOSING = b'"},"finish_reason":null}]}\n\n'
_STOP = (
    b'data: {"id":"chatcmpl-bench","object":"chat.completion.chunk","created":1700000000,"model":"bench",'
    b'"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
    b'data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":50}}\n\n'
    b"data: [DONE]\n\n"
)
_ERROR = b'data: {"error":{"message":"The server had an error","type":"server_error"}}\n\n'
_PIECE = (b"\x00\x10" * 30 + b"\x00\xf0" * 30) * 40
"""100 ms of 16-bit mono audio at 24 kHz."""
_END = b"0\r\n\r\n"


def _chunk(body: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(body), body)


# The monotonic clock hardly ever gains a digit, so the size of a chunk can be computed once.
_DIGITS = len(b"%d" % time.monotonic_ns())
_DELTA_HEAD = b"%x\r\n" % (len(_OPENING) + _DIGITS + len(_CLOSING)) + _OPENING
_DELTA_TAIL = _CLOSING + b"\r\n"
_STOP_CHUNK = _chunk(_STOP) + _END
_SOUND_CHUNK = _chunk(_PIECE)


def delta() -> bytes:
    """Return a delta whose text is a space and the current monotonic time in nanoseconds."""
    now = b"%d" % time.monotonic_ns()
    return _DELTA_HEAD + now + _DELTA_TAIL if len(now) == _DIGITS else _chunk(_OPENING + now + _CLOSING)


class Wheel:
    """Scheduled calls with a resolution of 1 ms, which share one timer of the event loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._due: dict[int, list[Callable[[int], None]]] = {}
        self._moments: list[int] = []
        self._timer: asyncio.TimerHandle | None = None

    @property
    def now_ms(self) -> int:
        return round(self._loop.time() * 1000)

    def add(self, at_ms: int, call: Callable[[int], None]) -> None:
        """Call `call(at_ms)` at the time `at_ms`."""
        if (calls := self._due.get(at_ms)) is not None:
            calls.append(call)
            return
        self._due[at_ms] = [call]
        heapq.heappush(self._moments, at_ms)
        if self._timer is None or at_ms == self._moments[0]:
            self._wake_at(at_ms)

    def _wake_at(self, at_ms: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(max(0, at_ms - self.now_ms) / 1000, self._run_due)

    def _run_due(self) -> None:
        self._timer = None
        now_ms = self.now_ms
        while self._moments and self._moments[0] <= now_ms:
            at_ms = heapq.heappop(self._moments)
            for call in self._due.pop(at_ms):
                call(at_ms)
        if self._moments:
            self._wake_at(self._moments[0])


def _said(request: bytes) -> str:
    """Return the beginning of the last text in a request."""
    found = _SAID.findall(request) or [b""]
    return found[-1].decode(errors="replace")


class Vendor:
    """State that all connections share.

    The share `failing` of the calls fails, each in one of four ways. With `hanging`, a fifth way is added: the call
    is never answered. Each failure is written to `faults` as a line of JSON with the time and the beginning of the
    last text in the request. The beginning and the end of each answered call are written to `calls` in this way.
    """

    def __init__(
        self,
        *,
        failing: float = 0,
        seed: int = 0,
        hanging: bool = False,
        faults: TextIO | None = None,
        calls: TextIO | None = None,
    ) -> None:
        self.wheel = Wheel()
        self.held: set[Upstream] = set()
        self._failing = failing
        self._faults = ("status", "hang up", "cut", "error", *(("hang",) if hanging else ()))
        self._random = random.Random(seed)  # noqa: S311 - not used for security
        self._fault_file = faults
        self._call_file = calls

    def log_fault(self, request: bytes) -> None:
        """Write the line about a call that fails at this moment."""
        if self._fault_file is not None:
            line = dumps({"at": time.time(), "said": _said(request)}).decode()
            print(line, file=self._fault_file, flush=True)

    def log_call(self, request: bytes, what: str) -> None:
        """Write the line about a call whose answer begins or ends at this moment."""
        if self._call_file is not None:
            print(dumps({"what": what, "said": _said(request)}).decode(), file=self._call_file, flush=True)

    def fault(self) -> str:
        if self._random.random() >= self._failing:
            return ""
        return self._random.choice(self._faults)


class Upstream(asyncio.Protocol):
    """One keep-alive connection."""

    def __init__(self, vendor: Vendor) -> None:
        self._vendor = vendor

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._loop = asyncio.get_running_loop()
        self._input = bytearray()
        self._remaining = 0
        self._every_ms = 0
        self._sound = False
        self._fault = ""
        self._request = b""

    def connection_lost(self, exc: Exception | None) -> None:
        self._vendor.held.discard(self)
        self._remaining = 0

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
        path = request[: request.find(b" HTTP/")]
        self._request = request
        if path == b"POST /release":
            self._transport.write(_EMPTY)
            held = self._vendor.held
            while held:
                held.pop().play(1, 0)
        elif path.endswith(b"/audio/transcriptions"):
            self._transcribe()
        elif (model := _MODEL.search(request)) is None:
            self._transport.write(_UNKNOWN)
        else:
            self._sound = path.endswith(b"/audio/speech")
            self._begin(model)

    def _fails_at_once(self) -> bool:
        """Choose the call's fault, if any. Return True if the call gets an error status or no answer."""
        self._fault = self._vendor.fault()
        if self._fault == "status":
            self._transport.write(_BROKEN)
        elif self._fault == "hang up":
            self._transport.abort()
        if at_once := self._fault in {"status", "hang up", "hang"}:
            self._vendor.log_fault(self._request)
        return at_once

    def _transcribe(self) -> None:
        if self._fails_at_once():
            return
        if self._fault:
            self._vendor.log_fault(self._request)
            self._transport.write(_TRANSCRIPT[: -len(_TRANSCRIPT_BODY) // 2])
            self._transport.close()
        else:
            self._transport.write(_TRANSCRIPT)

    def _begin(self, model: re.Match[bytes]) -> None:
        if not self._fails_at_once():
            self._vendor.log_call(self._request, "begin")
            self._transport.write(_SOUND if self._sound else _EVENTS)
            if model[1] is None:
                self._vendor.held.add(self)
            else:
                self.play(int(model[1]), int(model[2]), after_ms=int(model[3] or 0))

    def play(self, count: int, every_ms: int, *, after_ms: int = 0) -> None:
        """Write `count` deltas, one every `every_ms`. With 0 each delta is still a separate write."""
        self._remaining, self._every_ms = count, every_ms
        if self._fault:  # The answer breaks off half-way.
            self._remaining = max(1, count // 2)
        if every_ms or after_ms:
            self._vendor.wheel.add(self._vendor.wheel.now_ms + after_ms, self._next)
        else:
            self._next(0)

    def _next(self, due_ms: int) -> None:
        if not self._remaining:
            return
        self._transport.write(_SOUND_CHUNK if self._sound else delta())
        self._remaining -= 1
        if not self._remaining:
            self._finish()
        elif self._every_ms:
            self._vendor.wheel.add(due_ms + self._every_ms, self._next)
        else:
            self._loop.call_soon(self._next, 0)

    def _finish(self) -> None:
        if self._fault:
            self._vendor.log_fault(self._request)
        if self._fault == "error" and not self._sound:
            self._transport.write(_chunk(_ERROR) + _END)
        elif self._fault:
            self._transport.close()
        else:
            self._vendor.log_call(self._request, "end")
            self._transport.write(_END if self._sound else _STOP_CHUNK)


async def main(host: str, open_vendor: Callable[[], Vendor]) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    vendor, loop = open_vendor(), asyncio.get_running_loop()
    server = await loop.create_server(lambda: Upstream(vendor), host, 0, backlog=4096)
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m bench.upstream", description=__doc__)
    parser.add_argument("--failing", type=float, default=0, help="share of calls that fail (default: 0)")
    parser.add_argument("--seed", type=int, default=0, help="seed for the choice of failing calls")
    parser.add_argument("--hanging", action="store_true", help="leave some of the failing calls unanswered")
    parser.add_argument("--faults", type=Path, help="file to write the failing calls to")
    parser.add_argument("--calls", type=Path, help="file to write the beginnings and ends of calls to")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    args = parser.parse_args()
    with ExitStack() as stack:
        faults, calls = (path and stack.enter_context(path.open("a")) for path in (args.faults, args.calls))
        opened = partial(
            Vendor, failing=args.failing, seed=args.seed, hanging=args.hanging, faults=faults, calls=calls
        )
        sys.exit(uvloop.run(main(args.host, opened)))
