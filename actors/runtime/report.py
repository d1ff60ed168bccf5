"""Logs and metrics of streams: how each one ended, and how much memory the running ones use."""

import asyncio
from collections.abc import Sequence
from typing import Any, Protocol

import structlog
from prometheus_client import Gauge

from actors.runtime.context import StreamContext
from streams.log import EventLog
from streams.metrics import CounterMetric, HistogramMetric
from vendors.calls.metrics import BUCKETS_S

log = structlog.get_logger()

ENDED = CounterMetric("parley_streams_ended", "Streams by kind and how they ended", ["kind", "outcome"])
CRASHES = CounterMetric("parley_stream_crashes", "Streams ended by an unexpected exception", ["kind"])
SECONDS = HistogramMetric(
    "parley_stream_seconds",
    "Time from the request's head to a stage of the stream; overhead: our own time before the first output",
    ["kind", "stage"],
    buckets=BUCKETS_S,
)
LOGS_BYTES = Gauge("parley_logs_bytes", "Size of the event logs of running streams")
FINISHED_BYTES = Gauge(
    "parley_finished_logs_bytes", "Size of the event logs of ended streams, kept in memory for resuming readers"
)
LAG_BYTES = Gauge("parley_reader_lag_bytes", "Bytes that the slowest reader has not read")
READERS = Gauge("parley_stream_readers", "Readers of running streams")

_STAGES = ("stt", "first_text", "first_audio", "total", "overhead")
_BATCH = 500
"""Number of streams to measure before other tasks may run."""


class LiveStream(Protocol):
    """A running stream of this process."""

    @property
    def log(self) -> EventLog: ...


def report_end(ctx: StreamContext, kind: str, outcome: str, *, events: int, **fields: Any) -> None:
    """Log the end of a stream, update the metrics and add a trace. Called once per stream."""
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
    if (traces := ctx.resources.traces) is not None:
        traces.add(ctx, kind, outcome)


def report_crash(stream_id: str, kind: str, error: BaseException) -> None:
    """Log an unexpected exception with its traceback, and count it."""
    CRASHES.add(1, kind)
    log.error("stream.crashed", stream_id=stream_id, kind=kind, exc_info=error)


async def measure(streams: Sequence[LiveStream], *, finished_bytes: int) -> None:
    """Set the gauges of running streams. Called when metrics are read, so that events do not update gauges."""
    log_bytes = lag = readers = 0
    for number, stream in enumerate(streams, 1):
        log_bytes += stream.log.kept_bytes
        readers += stream.log.readers
        lag = max(lag, stream.log.lag)
        if number % _BATCH == 0:
            await asyncio.sleep(0)
    LOGS_BYTES.set(log_bytes)
    FINISHED_BYTES.set(finished_bytes)
    LAG_BYTES.set(lag)
    READERS.set(readers)
