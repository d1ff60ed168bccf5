"""A running attempt: its time limits, its buffer of items before the first output, and its record."""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Self, TypeVar

import structlog

from streams.push import PushSource, Sink, drain_into
from streams.tasks import background
from streams.wire.errors import ServiceError
from vendors.calls import metrics
from vendors.calls.attempts import Attempt, AttemptRecord, Failure, Item
from vendors.calls.gate import Admission
from vendors.calls.hedging import Clock
from vendors.calls.timeouts import IdleTimeout
from vendors.errors import Empty, Garbled, TimedOut, VendorError
from vendors.protocols import THINKING, Transcript

log = structlog.get_logger()

T = TypeVar("T")

_MAX_BUFFERED_ITEMS = 4096
_MAX_BUFFERED_CHARACTERS = 4 * 1024 * 1024


class RunningAttempt(PushSource[Item]):
    """A running attempt. Once `has_output` returns true, iterating yields all its items.

    The time limit between items runs only while the consumer waits for an item.
    """

    __slots__ = (
        "_admission",
        "_buffer",
        "_buffer_size",
        "_due_from",
        "_loop",
        "_opened",
        "_record",
        "_rest",
        "_started_at",
        "_timeout",
        "attempt",
        "meter",
        "records",
    )

    def __init__(self, attempt: Attempt[Item], records: list[AttemptRecord]) -> None:
        self.attempt = attempt
        self.meter = attempt.meter()
        self.records = records
        self._loop = asyncio.get_running_loop()
        self._started_at = self._due_from = self._loop.time()
        self._record = AttemptRecord(
            attempt.strategy,
            attempt.stage,
            attempt.vendor,
            self.meter,
            attempt.price,
            started_at=self._started_at,
            model=attempt.model,
        )
        self._timeout = IdleTimeout(self._loop)
        self._admission: Admission | None = None
        self._opened: AbstractAsyncContextManager[AsyncIterator[Item]] | None = None
        self._buffer: list[Item] = []
        self._buffer_size = 0
        records.append(self._record)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        trace: TracebackType | None = None,
    ) -> None:
        self._timeout.stop()
        opened, self._opened = self._opened, None
        admission, self._admission = self._admission, None
        try:
            if opened is not None:
                await opened.__aexit__(kind, error, trace)
        finally:
            if admission is not None:
                admission.release()
            self._record_end()

    async def has_output(self) -> bool:
        """Return whether the attempt has output. A failed attempt is recorded and closed."""
        attempt, clock = self.attempt, self.attempt.clock
        if clock is not None and not attempt.early:
            await clock()  # Outside the `try`, because an error of the input is not a failure of this attempt.
        try:
            if clock is None:
                self._timeout.begin(attempt.first_output_s)
                self._rest = await self._first_output()
            else:
                self._timeout.begin(None)
                async with background(self._start_limit_at_input_end(clock)):
                    self._rest = await self._first_output()
        except ServiceError as error:
            self.failed(error)
        except (TimeoutError, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError) and not self._timeout.expired():
                raise
            self.failed(
                TimedOut(attempt.vendor, f"had no output within {attempt.first_output_s:g} s", retryable=True)
            )
        else:
            now = self._loop.time()
            assert self._admission is not None, "an attempt with output was admitted"
            self._admission.succeeded(now - self._due_from)
            metrics.had_output(attempt.stage, attempt.vendor, after_s=now - self._due_from)
            self._record.first_output_ms = round((now - self._started_at) * 1000)
            return True
        finally:
            self._timeout.done()
        await self.__aexit__()
        return False

    async def _first_output(self) -> AsyncIterator[Item]:
        attempt = self.attempt
        self._admission = attempt.gate.try_admit() or await attempt.gate.admit(attempt.vendor)
        opening = attempt.open()
        items = await opening.__aenter__()
        self._opened = opening
        self._record.accepted = True
        async for item in items:
            if item is THINKING:
                self._timeout.since = self._loop.time()
                continue
            self.meter.observe(item)
            self._buffer_item(item)
            if attempt.is_output(item):
                return items
        raise Empty(attempt.vendor, "sent an empty response")

    def _buffer_item(self, item: Item) -> None:
        """Buffer an item for the consumer.

        Partial transcripts are dropped, because the next one repeats their text.
        """
        if isinstance(item, Transcript) and not item.final:
            return
        self._buffer.append(item)
        self._buffer_size += len(getattr(item, "text", ""))
        if len(self._buffer) > _MAX_BUFFERED_ITEMS or self._buffer_size > _MAX_BUFFERED_CHARACTERS:
            raise Garbled(self.attempt.vendor, "sent too much before its first output", retryable=True)

    async def _start_limit_at_input_end(self, clock: Clock) -> None:
        extra_s = await clock()
        self._timeout.limit(self.attempt.first_output_s + extra_s)
        self._due_from = self._timeout.since

    async def __anext__(self) -> Item:
        if self._buffer:
            return self._buffer.pop(0)
        try:
            item = await self._within_limit(anext(self._rest))
        except StopAsyncIteration:
            self._record.outcome = "won"
            raise
        self.meter.observe(item)
        return item

    async def push_to(self, sink: Sink[Item]) -> bool:
        while self._buffer:
            if not sink(self._buffer.pop(0)):
                return True
        observe, timeout, now = self.meter.observe, self._timeout, self._loop.time

        def push(item: Item) -> bool:
            timeout.since = now()
            observe(item)
            return sink(item)

        stopped = await self._within_limit(drain_into(self._rest, push))
        if not stopped:
            self._record.outcome = "won"
        return stopped

    async def _within_limit(self, waiting: Awaitable[T]) -> T:
        attempt = self.attempt
        self._timeout.begin(attempt.between_s)
        try:
            return await waiting
        except asyncio.CancelledError:
            if not self._timeout.expired():
                raise
            timed_out = TimedOut(attempt.vendor, f"was silent for {attempt.between_s:g} s", retryable=True)
            self.failed(timed_out)
            raise timed_out from None
        except ServiceError as error:
            self.failed(error)
            raise
        finally:
            self._timeout.done()

    def lost(self) -> None:
        """Record that the other of two hedged attempts has won."""
        if not self._record.ended:
            self._record.outcome = "hedged"

    def failed(self, error: ServiceError) -> None:
        """Record and log the failure."""
        attempt = self.attempt
        error.redact(attempt.gate.secret)
        self._record.outcome = "failed"
        self._record.failure = Failure(error.error_type, str(error), error.retryable, error.retry_after_s)
        if self._admission is not None:
            self._admission.failed(error)
        self._record_end()
        location = {}
        if isinstance(error, VendorError) and error.address:
            location = {"address": error.address, "detail": error.detail}
        log.warning(
            "attempt.failed",
            strategy=attempt.strategy,
            stage=attempt.stage,
            vendor=attempt.vendor,
            error=str(error),
            elapsed_ms=self._record.elapsed_ms,
            **location,
        )

    def _record_end(self) -> None:
        if not self._record.ended:
            self._record.ended = True
            elapsed_s = self._loop.time() - self._started_at
            self._record.elapsed_ms = round(elapsed_s * 1000)
            attempt = self.attempt
            metrics.ended(attempt.stage, attempt.vendor, self._record.outcome, elapsed_s=elapsed_s)
