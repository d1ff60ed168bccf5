"""A stream that reports when its input arrived and when its events were written, for `python -m app doctor`."""

import asyncio
import secrets
import time
from contextlib import suppress
from typing import Any

from aiohttp import web
from pydantic import Field

from app.admin.area import FOR_EDITORS
from app.http.callers.addresses import networks_of, parse_address, peer_ip
from app.http.request.pipeline import add_headers
from app.http.rows.docs import Docs, OtherResponse
from app.http.rows.endpoint import Call, Endpoint
from app.http.rows.inputs import Chunked
from streams.body import ChunkReader
from streams.log import EventLog
from streams.sse import EventStream
from streams.tasks import background
from streams.wire.codec import dumps
from streams.wire.errors import ServiceError
from streams.wire.model import Model

_LOG_BYTES = 1024 * 1024
_LAG_BYTES = 256 * 1024
_FLOOD_S = 2.0
_STALL_S = 0.5
"""While the client does not read, the server writes for at most the first time, or until nothing is accepted for
the second."""
_KIB = 1024
_COMMENT = b": " + secrets.token_hex(24 * _KIB - 2).encode() + b"\n\n"
"""48 KiB of random data, which a proxy cannot compress much."""
_MAX_PARTS = 64
_SEND_TIMEOUT_S = 10
_PING_AFTER_S = 15
_NO_BUFFERING = "X-Accel-Buffering"


class ProbeParams(Model):
    ticks: int = Field(default=4, ge=1, le=20)
    """Number of events that are written after the input has ended."""
    every_ms: int = Field(default=100, ge=1, le=1000)
    """Milliseconds between them."""
    flood_kib: int = Field(default=0, ge=0, le=64 * _KIB)
    """Size of the comments that are written after them, for two seconds at most. `end` reports how many KiB were
    written."""
    hint: bool = True
    """Whether the response asks proxies not to buffer it (`X-Accel-Buffering`), as all streams do."""


async def probe(call: Call, body: Chunked[ProbeParams]) -> web.StreamResponse:
    """Measure whether a proxy buffers.

    The path begins like those of streams, so that a proxy treats it in the same way. The field `at_ms` of each
    event is the time in milliseconds from the parameters to the event. `start` has the addresses of the proxy and
    of the client. A `received` for each part of the input follows, then `ticks` times `tick`, then `end`. A client
    that stops reading for a while before `end` learns whether a proxy reads in its place.
    """
    response = EventStream({}, send_timeout_s=_SEND_TIMEOUT_S, ping_after_s=_PING_AFTER_S)
    if not body.parameters.hint:
        response.headers.popall(_NO_BUFFERING, None)
    add_headers(call.request, response.headers)
    log = EventLog(keep_bytes=_LOG_BYTES, lag_bytes=_LAG_BYTES)
    written = _Events(log)
    written.add("start", **_addresses(call))
    async with background(_write(written, body.rest, body.parameters)):
        await response.prepare(call.request)
        await response.send_all(log, 0)
    return response


class _Events:
    """Writes events with the time since the first one."""

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self._began = time.monotonic()

    def add(self, name: str, **content: Any) -> None:
        self._log.put(self._frame(name, content))

    async def flood(self, kib: int) -> int:
        """Write comments while the reader accepts them. Return their size in KiB."""
        accepted = 0
        with suppress(TimeoutError):
            async with asyncio.timeout(_FLOOD_S):
                while accepted < kib:
                    async with asyncio.timeout(_STALL_S):
                        await self._log.append(_COMMENT)
                    accepted += len(_COMMENT) // _KIB
        return accepted

    def end(self, **content: Any) -> None:
        self._log.finish(self._frame("end", content))

    def _frame(self, name: str, content: dict[str, Any]) -> bytes:
        at_ms = round((time.monotonic() - self._began) * 1000, 1)
        body = dumps({"content": {"at_ms": at_ms, **content}})
        return b"id: %d\nevent: %b\ndata: %b\n\n" % (self._log.last_id + 1, name.encode(), body)


async def _write(events: _Events, rest: ChunkReader, params: ProbeParams) -> None:
    try:
        parts = 0
        while (part := await rest.next_part()) is not None:
            parts += 1
            if part[0] and parts <= _MAX_PARTS:
                events.add("received", bytes=len(part[0]))
    except ServiceError as error:
        events.end(error=str(error))
        return
    for _ in range(params.ticks):
        await asyncio.sleep(params.every_ms / 1000)
        events.add("tick")
    events.end(flood_kib=await events.flood(params.flood_kib))


def _addresses(call: Call) -> dict[str, Any]:
    """Return the addresses on the way to the client that the server knows."""
    request, trusted = call.request, call.services.settings.trusted_proxies
    peer = parse_address(request.remote or "")
    return {
        "peer": request.remote or "",
        "trusted": peer is not None and any(peer in network for network in networks_of(trusted)),
        "client": peer_ip(request, trusted),
        "forwarded_for": request.headers.get("X-Forwarded-For", ""),
        "process": call.services.heartbeat.process,
    }


PROBE_ROUTES = [
    Endpoint(
        "POST",
        "/bp/ai/probe",
        probe,
        FOR_EDITORS,
        docs=Docs(
            bodies={"two ticks": '{"ticks":2}aW5wdXQ='},
            answers={200: OtherResponse("The events.", "text/event-stream")},
        ),
    )
]
