"""What the operator is told of streams: how each ended, and what those that live hold at the moment."""

import asyncio
from collections.abc import Sequence
from typing import Any, Protocol

import structlog
from prometheus_client import Gauge

from actors.context import StreamContext
from streams.log import EventLog
from streams.metrics import Counts, Times
from vendors.metrics import BUCKETS_S

log = structlog.get_logger()

ENDED = Counts("parley_streams_ended", "Streams by kind and how they ended", ["kind", "outcome"])
CRASHES = Counts("parley_stream_crashes", "Streams that a fault of ours ended", ["kind"])
SECONDS = Times(
    "parley_stream_seconds",
    "Time from a request's head to a stage of its stream; overhead: our own time before the first output",
    ["kind", "stage"],
    buckets=BUCKETS_S,
)
LOGS_BYTES = Gauge("parley_logs_bytes", "Events that living streams keep for their readers")
FINISHED_BYTES = Gauge(
    "parley_finished_logs_bytes", "Events of streams that have ended, kept in memory for readers who come back"
)
LAG_BYTES = Gauge("parley_reader_lag_bytes", "What the slowest reader has not taken")
READERS = Gauge("parley_stream_readers", "Readers of living streams")

_STAGES = ("stt", "first_text", "first_audio", "total", "overhead")
_AT_ONCE = 500
"""Streams that are looked at before the loop may do something else."""


class Living(Protocol):
    """A stream of this process."""

    @property
    def log(self) -> EventLog: ...


def report_end(ctx: StreamContext, kind: str, outcome: str, *, events: int, **fields: Any) -> None:
    """Log, count and time the end of a stream, and tell whoever else wants to know. Called once."""
    latency_ms = ctx.receipt.latency_ms
    ENDED.add(1, kind, outcome)
    for stage in _STAGES:
        if stage in latency_ms:
            SECONDS.add(latency_ms[stage] / 1000, kind, stage)
    log.info(
        "stream.ended",
        stream_id=ctx.stream_id,
        request_id=ctx.request_id,
        kind=kind,
        app_id=ctx.owner.app_id,
        user_id=ctx.owner.user_id,
        outcome=outcome,
        events=events,
        **latency_ms,
        **fields,
    )
    if ctx.on_end is not None:
        ctx.on_end(ctx, kind, outcome)


def report_crash(stream_id: str, kind: str, error: BaseException) -> None:
    """Log a fault of ours with its stack, and count it."""
    CRASHES.add(1, kind)
    log.error("stream.crashed", stream_id=stream_id, kind=kind, exc_info=error)


async def measure(streams: Sequence[Living], *, finished_bytes: int) -> None:
    """Set the gauges of what lives; asked for when they are read, so that no event pays for them."""
    kept = lag = readers = 0
    for number, stream in enumerate(streams, 1):
        kept += stream.log.kept_bytes
        readers += stream.log.readers
        lag = max(lag, stream.log.lag)
        if number % _AT_ONCE == 0:
            await asyncio.sleep(0)
    LOGS_BYTES.set(kept)
    FINISHED_BYTES.set(finished_bytes)
    LAG_BYTES.set(lag)
    READERS.set(readers)
