"""Traces of streams: gathered as they end, sent by a thread of its own to where the operator collects them."""

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Protocol

import structlog
from prometheus_client import Counter

from actors.context import OnEnd, StreamContext
from app.spans import Trace, trace_of

log = structlog.get_logger()
LOST = Counter("parley_traces_lost", "Streams whose trace did not reach the collector")

_KEPT = 2048
_AT_ONCE = 64
_GATHER_S = 1.0
_FLUSH_S = 2.0


class Sender(Protocol):
    """Where traces go. Both may be called from any thread, `send` from one alone."""

    def send(self, traces: Sequence[Trace]) -> bool: ...

    def stop(self) -> None: ...


class Traces:
    """Those of streams that have ended and are not sent yet: a bounded number, the rest is lost and counted."""

    def __init__(self, sender: Sender) -> None:
        self._sender = sender
        self._waiting: deque[Trace] = deque()
        self._closing = threading.Event()
        self._cut = False
        self._loop = asyncio.get_running_loop()
        self._sent = asyncio.Event()
        threading.Thread(target=self._run, name="traces", daemon=True).start()

    def of_request(self, headers: Mapping[str, str]) -> OnEnd:
        """Traces the stream of a request, under the span that its `traceparent` names."""
        return partial(self._take, headers.get("traceparent", ""))

    async def close(self) -> None:
        """Send what is left, within two seconds."""
        self._closing.set()
        try:
            async with asyncio.timeout(_FLUSH_S):
                await self._sent.wait()
        except TimeoutError:
            self._cut = True
            self._sender.stop()
            LOST.inc(len(self._waiting))
            log.warning("traces.cut", streams=len(self._waiting))

    def _take(self, parent: str, ctx: StreamContext, kind: str, outcome: str) -> None:
        if self._closing.is_set() or len(self._waiting) >= _KEPT:
            LOST.inc()
            return
        self._waiting.append(trace_of(ctx, kind, outcome, parent=parent))

    def _run(self) -> None:
        while not self._closing.wait(_GATHER_S):
            self._send()
        self._send()
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self._loop.call_soon_threadsafe(self._sent.set)

    def _send(self) -> None:
        while self._waiting and not self._cut:
            some = [self._waiting.popleft() for _ in range(min(len(self._waiting), _AT_ONCE))]
            try:
                taken = self._sender.send(some)
            except Exception as error:  # noqa: BLE001 - the thread goes on: what comes next may be taken
                log.error("traces.failed", error=type(error).__name__)
                taken = False
            if not taken:
                LOST.inc(len(some))


@asynccontextmanager
async def open_traces(url: str | None) -> AsyncIterator[Traces | None]:
    """Traces to the collector at `url`; none without one, or without the package that speaks to it."""
    sender = None if url is None else _sender(url)
    if sender is None:
        yield None
        return
    traces = Traces(sender)
    try:
        yield traces
    finally:
        await traces.close()


def _sender(url: str) -> Sender | None:
    try:
        from app.otlp import OtlpSender  # noqa: PLC0415 - an extra, and slow to import
    except ImportError as error:
        log.error("traces.off", reason="install parley[otel] to send traces", missing=error.name)
        return None
    return OtlpSender(url)
