"""Traces of streams, which are collected when streams end and sent to a collector by a thread."""

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Protocol

import structlog
from prometheus_client import Counter

from actors.runtime.context import StreamContext
from app.observing.spans import Trace, trace_of

log = structlog.get_logger()
LOST = Counter("parley_traces_lost", "Streams whose trace did not reach the collector")

_MAX_QUEUED = 2048
_BATCH_SIZE = 64
_INTERVAL_S = 1.0
_FLUSH_S = 2.0


class Sender(Protocol):
    """Sends traces. `stop` may be called from any thread, `send` always from the same one."""

    def send(self, traces: Sequence[Trace]) -> bool: ...

    def stop(self) -> None: ...


class Traces:
    """A bounded queue of traces that are to be sent. Traces that do not fit are dropped and counted."""

    def __init__(self, sender: Sender) -> None:
        self._sender = sender
        self._queue: deque[Trace] = deque()
        self._closing = threading.Event()
        self._stopped = False
        self._loop = asyncio.get_running_loop()
        self._sent = asyncio.Event()
        threading.Thread(target=self._run, name="traces", daemon=True).start()

    def add(self, ctx: StreamContext, kind: str, outcome: str) -> None:
        """Trace a stream that has ended, below the parent span of its `traceparent`."""
        if self._closing.is_set() or len(self._queue) >= _MAX_QUEUED:
            LOST.inc()
            return
        self._queue.append(trace_of(ctx, kind, outcome, parent=ctx.traceparent))

    async def close(self) -> None:
        """Send the queued traces, for at most two seconds."""
        self._closing.set()
        try:
            async with asyncio.timeout(_FLUSH_S):
                await self._sent.wait()
        except TimeoutError:
            self._stopped = True
            self._sender.stop()
            LOST.inc(len(self._queue))
            log.warning("traces.dropped", streams=len(self._queue))

    def _run(self) -> None:
        while not self._closing.wait(_INTERVAL_S):
            self._send()
        self._send()
        with suppress(RuntimeError):  # The loop is closed, so nothing waits for the event.
            self._loop.call_soon_threadsafe(self._sent.set)

    def _send(self) -> None:
        while self._queue and not self._stopped:
            batch = [self._queue.popleft() for _ in range(min(len(self._queue), _BATCH_SIZE))]
            try:
                accepted = self._sender.send(batch)
            except Exception as error:  # noqa: BLE001 - the thread must survive
                log.error("traces.failed", error=type(error).__name__)
                accepted = False
            if not accepted:
                LOST.inc(len(batch))


@asynccontextmanager
async def open_traces(url: str | None) -> AsyncIterator[Traces | None]:
    """Open traces to the collector at `url`.

    Yields `None` if `url` is `None` or the OpenTelemetry packages are not installed.
    """
    sender = None if url is None else _load_sender(url)
    if sender is None:
        yield None
        return
    traces = Traces(sender)
    try:
        yield traces
    finally:
        await traces.close()


def _load_sender(url: str) -> Sender | None:
    try:
        from app.observing.otlp import OtlpSender  # noqa: PLC0415 - an extra, and slow to import
    except ImportError as error:
        log.error("traces.disabled", reason="install parley[otel] to send traces", missing=error.name)
        return None
    return OtlpSender(url)
