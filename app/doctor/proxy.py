"""Finds out how a proxy between clients and Parley treats streams, by `POST /bp/ai/probe`."""

import asyncio
import time
from collections.abc import AsyncIterable, AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from aiohttp import ClientSession, ClientTimeout

from app.doctor.findings import Area, error_text
from app.doctor.outside import FAILURES, open_http
from app.doctor.surroundings import Surroundings
from storage.operators.doctor_reports import Finding
from streams.wire.codec import dumps, loads
from vendors.http.sse import SseParser

AREA = Area("proxy")
PROBE = "/bp/ai/probe"
_PARTS = 5
_TICKS = 5
_EVERY_S = 0.2
_WITHIN_S = 30
_UNREAD_S = 2.3
_FLOOD_KIB = 48 * 1024
"""More than the kernels on the way buffer for a client that does not read.

The kernel of the proxy may buffer 6 to 32 MiB that it received (`tcp_rmem`), and those of both senders 4 MiB each
(`tcp_wmem`).
"""
_LARGE_BYTES = 14 * 1024 * 1024
"""The largest request that Parley reads: 10 MiB of audio in Base64."""
_LAG_S = 0.3
"""A piece that is this much later than the quickest one was held back. The offset of the clocks cancels out."""
_PART = b"a part of the input\n"
_BUFFERED_STREAM = "users see nothing for seconds, and then many words at once"
_BUFFERING = "nginx: proxy_buffering off;"
_IGNORED = f"{_BUFFERING} and no proxy_ignore_headers X-Accel-Buffering;"
_ELSEWHERE = "other proxies and CDNs: neither buffer, cache nor compress text/event-stream"


@dataclass(slots=True)
class Passage:
    """One stream through the proxy. Times are in seconds. Each list is measured by a single clock."""

    server: str = ""
    """The header `Server` of the response, which a proxy replaces with its own."""
    encoding: str = ""
    sent: list[float] = field(default_factory=list)
    read: list[tuple[int, float]] = field(default_factory=list)
    """How many bytes the server had read of the parts, and when, by its clock."""
    written: list[float] = field(default_factory=list)
    """When the server wrote the ticks, by its clock."""
    arrived: list[float] = field(default_factory=list)
    start: dict[str, Any] = field(default_factory=dict)
    flood_kib: int = 0
    """The amount that the server writes at the end, while the client does not read."""
    unread_kib: int = 0
    """The amount of the stream that was accepted on the way while the client did not read."""

    @property
    def received(self) -> list[float]:
        """When the server had got each part. Several parts may arrive as one piece."""
        ends = [len(_PART) * number for number in range(1, len(self.sent) + 1)]
        return [next((at_s for size, at_s in self.read if size >= end), 0.0) for end in ends]

    @property
    def holds_uploads(self) -> bool:
        return _lag(self.sent, self.received) > _LAG_S

    @property
    def reads_ahead(self) -> bool:
        """Whether something on the way reads data that the client does not read."""
        return 0 < self.flood_kib <= self.unread_kib

    @property
    def holds_events(self) -> bool:
        return _lag(self.written, self.arrived) > _LAG_S


def _spread(times: Sequence[float]) -> float:
    return times[-1] - times[0] if times else 0.0


def _lag(begun: Sequence[float], ended: Sequence[float]) -> float:
    """Return by how much the slowest piece was later than the quickest one."""
    lags = [end - begin for begin, end in zip(begun, ended, strict=True)]
    return max(lags) - min(lags) if lags else 0.0


async def check(here: Surroundings) -> AsyncIterator[Finding]:
    async with open_http(here) as http:
        try:
            as_usual, unasked = await asyncio.gather(
                _measure(http, here, hint=True, flood_kib=0), _measure(http, here, hint=False, flood_kib=_FLOOD_KIB)
            )
        except FAILURES as error:
            yield AREA.broken(
                "stream",
                f"{here.settings.public_url}{PROBE}: {error_text(error)}",
                why="it is not known whether streams pass",
                fix="repair what the other points name; the PARLEY_ADMIN_TOKEN of this shell must be the server's",
            )
            return
        yield _kind(as_usual)
        yield _upload(as_usual)
        yield _events(as_usual, unasked)
        size = None if as_usual.holds_uploads else await _size(http, here)
        for finding in (_encoding(as_usual, unasked), _addresses(as_usual), size):
            if finding is not None:
                yield finding


async def _measure(http: ClientSession, here: Surroundings, *, hint: bool, flood_kib: int) -> Passage:
    """Return a passage. If data seems to be held back, try again, because the machine may have been busy.

    A proxy that holds data back does so each time. So a direction that passed the first time is not measured again.
    """
    first = await _pass(http, here, hint=hint, flood_kib=flood_kib)
    if not (first.holds_uploads or first.holds_events):
        return first
    second = await _pass(http, here, hint=hint, flood_kib=flood_kib)
    if not first.holds_uploads:
        second.sent, second.read = first.sent, first.read
    if not first.holds_events:
        second.written, second.arrived = first.written, first.arrived
    return second


async def _pass(http: ClientSession, here: Surroundings, *, hint: bool, flood_kib: int) -> Passage:
    """Send parts and read events, both with pauses. Raises one of `FAILURES`."""
    passage = Passage(flood_kib=flood_kib)

    async def body() -> AsyncIterator[bytes]:
        yield dumps({"ticks": _TICKS, "every_ms": round(_EVERY_S * 1000), "hint": hint, "flood_kib": flood_kib})
        for _ in range(_PARTS):
            await asyncio.sleep(_EVERY_S)
            passage.sent.append(time.monotonic())
            yield _PART

    async with http.post(
        here.settings.public_url + PROBE,
        data=body(),
        headers=_headers(here),
        timeout=ClientTimeout(total=_WITHIN_S),
        allow_redirects=False,
    ) as response:
        if response.status != 200:
            raise ValueError(f"{response.status}: {(await response.text())[:200]}")
        passage.server = response.headers.get("Server", "")
        passage.encoding = response.headers.get("Content-Encoding", "")
        await _read(passage, response.content.iter_any())
    return passage


def _headers(here: Surroundings) -> dict[str, str]:
    return {
        "Authorization": f"Bearer {here.settings.admin_token.get_secret_value()}",
        "Accept": "text/event-stream",
        "Accept-Encoding": "gzip",
    }


async def _read(passage: Passage, pieces: AsyncIterable[bytes]) -> None:
    parser = SseParser()
    async for piece in pieces:
        for event in parser.feed(piece):
            content = loads(event.data)["content"]
            await _note(passage, event.name, content)
            if event.name == "end":
                if "error" in content:
                    raise ValueError(content["error"])
                return
    raise ValueError("the stream was cut off")


async def _note(passage: Passage, name: str, content: Any) -> None:
    match name:
        case "start":
            passage.start = content
        case "received":
            before = passage.read[-1][0] if passage.read else 0
            passage.read.append((before + content["bytes"], content["at_ms"] / 1000))
        case "tick":
            passage.written.append(content["at_ms"] / 1000)
            passage.arrived.append(time.monotonic())
            if passage.flood_kib and len(passage.arrived) == _TICKS:
                await asyncio.sleep(_UNREAD_S)
        case "end":
            passage.unread_kib = content.get("flood_kib", 0)


def _kind(passage: Passage) -> Finding:
    if passage.server in {"", "parley"}:
        return AREA.good("stream", "it passes; no proxy names itself")
    return AREA.good("stream", f"it passes, through {passage.server}")


def _upload(passage: Passage) -> Finding:
    seen = f"parts sent {_times(passage.sent, passage.received)}"
    if not passage.holds_uploads:
        return AREA.good("uploads", seen)
    return AREA.broken(
        "uploads",
        f"they are held back until they are complete: {seen}",
        why="speech is only recognized after the user has stopped speaking, so every answer is late",
        fix="nginx: proxy_request_buffering off; and proxy_http_version 1.1; HAProxy: no option "
        "http-buffer-request",
    )


def _events(as_usual: Passage, unasked: Passage) -> Finding:
    if as_usual.holds_events:
        return AREA.broken(
            "events",
            f"they are held back: {_written(as_usual)}",
            why=_BUFFERED_STREAM,
            fix=f"{_IGNORED} {_ELSEWHERE}",
        )
    if unasked.holds_events:
        return AREA.doubtful(
            "events",
            f"they pass only because Parley asks for it with X-Accel-Buffering; without it, {_written(unasked)}",
            why=f"once a proxy removes or ignores this header, {_BUFFERED_STREAM}",
            fix=f"{_BUFFERING} as in deploy/nginx.conf; {_ELSEWHERE}",
        )
    if not unasked.reads_ahead:
        return AREA.good("events", _written(as_usual))
    return AREA.doubtful(
        "events",
        "the proxy buffers, unless Parley asks it not to with X-Accel-Buffering: without it, "
        f"{unasked.unread_kib >> 10} MiB were accepted that the client did not read",
        why="the server does not notice a client that stops reading, and the proxy writes streams to its disk",
        fix=f"{_IGNORED} {_ELSEWHERE}",
    )


def _written(passage: Passage) -> str:
    return f"events written {_times(passage.written, passage.arrived)}"


def _times(begun: Sequence[float], ended: Sequence[float]) -> str:
    lag = _lag(begun, ended)
    seen = f"over {_spread(begun):.2f} s arrived over {_spread(ended):.2f} s"
    return f"{seen}, up to {lag:.2f} s late" if lag > _LAG_S else seen


def _encoding(*passages: Passage) -> Finding | None:
    used = next((passage.encoding for passage in passages if passage.encoding), "")
    if not used:
        return None
    return AREA.doubtful(
        "compression",
        f"the proxy compresses streams with {used}",
        why="each stream needs memory for a compressor, and events may wait in it",
        fix="nginx: gzip off; or no text/event-stream in gzip_types",
    )


def _addresses(passage: Passage) -> Finding | None:
    peer, client, forwarded = (passage.start.get(name, "") for name in ("peer", "client", "forwarded_for"))
    if forwarded and not passage.start.get("trusted"):
        return AREA.doubtful(
            "client addresses",
            f"{peer} sends X-Forwarded-For, which is not trusted",
            why="all clients count as one address, so they share its rate limits and its number of connections",
            fix=f"set PARLEY_TRUSTED_PROXIES={peer}/{128 if ':' in peer else 32}",
        )
    if not forwarded and passage.server not in {"", "parley"}:
        return AREA.doubtful(
            "client addresses",
            f"{passage.server} sends no X-Forwarded-For",
            why="all clients count as one address, so they share its rate limits and its number of connections",
            fix="nginx: proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; HAProxy: option forwardfor",
        )
    return AREA.good("client addresses", f"the server sees {client}") if forwarded else None


async def _size(http: ClientSession, here: Surroundings) -> Finding | None:
    """Announce a large request without sending it. A proxy refuses it at once if it allows less.

    A proxy that first reads the whole request would not answer.
    """
    answered = asyncio.Event()

    async def body() -> AsyncIterator[bytes]:
        yield dumps({"ticks": 1})
        await answered.wait()

    headers = {**_headers(here), "Content-Length": str(_LARGE_BYTES)}
    try:
        async with http.post(here.settings.public_url + PROBE, data=body(), headers=headers) as response:
            status = response.status
    except FAILURES:
        return None
    finally:
        answered.set()
    seen = f"a request of {_LARGE_BYTES >> 20} MiB is answered with {status}"
    if status == 200:
        return AREA.good("size", seen)
    return AREA.broken(
        "size",
        seen,
        why="long recordings are refused, without an error that clients understand",
        fix="nginx: client_max_body_size 32m",
    )
