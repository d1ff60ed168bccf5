"""Fallback: try strategies in order until one has output. Used for every kind of attempt (§4.19)."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass, field
from decimal import Decimal
from types import TracebackType
from typing import Any, Generic, Literal, NamedTuple, Self, TypeVar

import structlog

from streams.push import PushSource, Sink, drain_into
from streams.tasks import background
from streams.wire.errors import ServiceError
from vendors import metrics
from vendors.errors import Empty, Garbled, TimedOut, VendorError
from vendors.gate import Gate, GatePolicy, Hedge
from vendors.hedging import Clock, race
from vendors.meter import FREE, Meter, UnitPrice
from vendors.protocols import Transcript, Usage
from vendors.timeouts import IdleTimeout

log = structlog.get_logger()

Stage = Literal["stt", "llm", "tts", "assess"]
Outcome = Literal["won", "failed", "hedged", "canceled"]
Item = TypeVar("Item")
T = TypeVar("T")
Opener = Callable[[], AbstractAsyncContextManager[AsyncIterator[Item]]]

_MAX_BUFFERED_ITEMS = 4096
_MAX_BUFFERED_CHARACTERS = 4 * 1024 * 1024


@dataclass(slots=True)
class Attempt(Generic[Item]):
    """One attempt of a strategy. `open` may raise immediately, which counts as a failed attempt.

    The first item for which `is_output` returns true is the first output. Items before it are buffered.

    `first_output_s`, `between_s`: the time limits for the first output and for each item after it.
    `hedge`: the delay without output after which the next attempt is started in parallel.
    `clock`: for attempts that consume input. Returns when the input ends; the limit for the first output and the
    hedge delay start then. Its result is added to `first_output_s`, in seconds.
    `early`: whether the vendor is called before the input ends.
    """

    strategy: str
    stage: Stage
    vendor: str
    open: Opener[Item]
    is_output: Callable[[Item], bool]
    first_output_s: float
    between_s: float
    hedge: Hedge | None = None
    gate: Gate = field(default_factory=lambda: Gate("none", GatePolicy()))
    meter: Callable[[], Meter] = Meter
    price: UnitPrice = FREE
    clock: Clock | None = None
    early: bool = True


class Failure(NamedTuple):
    """The error of an attempt. An exception would refer to the frames in which it was raised."""

    error_type: str
    message: str
    retryable: bool


@dataclass(slots=True)
class AttemptRecord:
    """The outcome of one attempt: timings, usage, error."""

    strategy: str
    stage: Stage
    vendor: str
    meter: Meter
    price: UnitPrice
    started_at: float = 0
    """The start time by `time.monotonic()`, which is also the loop's clock."""
    accepted: bool = False
    """Whether the vendor accepted the call. A refused call has no usage."""
    outcome: Outcome = "canceled"
    failure: Failure | None = None
    """Set if the attempt has failed."""
    first_output_ms: int | None = None
    elapsed_ms: int = 0

    @property
    def usage(self) -> Usage:
        return self.meter.usage if self.accepted else Usage(0, 0)

    @property
    def cost(self) -> Decimal:
        usage = self.usage
        return self.price.input * usage.input_token + self.price.output * usage.output_token

    def as_error_detail(self) -> dict[str, Any]:
        """Return the entry for `extra.attempts` of an error."""
        assert self.failure is not None, "only failed attempts have an error"
        return {
            "strategy": self.strategy,
            "stage": self.stage,
            "error_type": self.failure.error_type,
            "message": self.failure.message,
            "elapsed_ms": self.elapsed_ms,
        }


def failed_attempt(strategy: str, stage: Stage, fault: ServiceError) -> Attempt[Any]:
    """Return an attempt that fails with `fault`, for a strategy that has no client."""

    def refuse() -> AbstractAsyncContextManager[AsyncIterator[Any]]:
        # `fault` is kept and raised by many streams. Without this its traceback would grow with each of them.
        raise fault.with_traceback(None)

    return Attempt(strategy, stage, metrics.NO_VENDOR, refuse, lambda _: True, first_output_s=1, between_s=1)


class AllStrategiesFailed(ServiceError):
    """No strategy had any output. `extra.attempts` has the error of each."""

    error_type = "all_strategies_failed"
    status = 502

    def __init__(self, failures: Sequence[AttemptRecord]) -> None:
        names = ", ".join(failure.strategy for failure in failures) or "none"
        attempts = [failure.as_error_detail() for failure in failures]
        super().__init__(f"every strategy failed ({names})", extra={"attempts": attempts})
        self.retryable = any(record.failure is not None and record.failure.retryable for record in failures)


class first_success(Generic[Item]):  # noqa: N801 - used like a function
    """A context manager that returns the first attempt with output, and an iterator over all its items.

    If an attempt fails before its first output, the next one is tried. A later failure is raised by the iterator.
    Losing attempts are closed before the block runs, the winner at its end. Each started attempt is added to
    `records`, which are complete once the block has ended.
    """

    __slots__ = ("_attempts", "_records", "_winner")

    def __init__(self, attempts: Sequence[Attempt[Item]], records: list[AttemptRecord] | None = None) -> None:
        self._attempts = attempts
        self._records: list[AttemptRecord] = [] if records is None else records

    async def __aenter__(self) -> tuple[Attempt[Item], AsyncIterator[Item]]:
        first_record = len(self._records)
        remaining = list(self._attempts)
        while remaining:
            attempt = _RunningAttempt(remaining.pop(0), self._records)
            candidate = attempt.attempt
            hedge_after_s = candidate.gate.hedge_after_s(candidate.hedge) if remaining else None
            if hedge_after_s is not None:
                if (won := await self._race(attempt, remaining, hedge_after_s)) is not None:
                    return won
                continue
            self._winner: _RunningAttempt[Item] | AsyncExitStack = attempt
            try:
                if await attempt.has_output():
                    return candidate, attempt
            except BaseException as error:
                await attempt.__aexit__(type(error), error, error.__traceback__)
                raise
        failed = [record for record in self._records[first_record:] if record.outcome == "failed"]
        raise AllStrategiesFailed(failed)

    def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Coroutine[Any, Any, bool | None]:
        return self._winner.__aexit__(kind, error, trace)

    async def _race(
        self, attempt: "_RunningAttempt[Item]", remaining: list[Attempt[Item]], hedge_after_s: float
    ) -> tuple[Attempt[Item], AsyncIterator[Item]] | None:
        def start_second() -> _RunningAttempt[Item] | None:
            return _RunningAttempt(remaining.pop(0), attempt.records) if remaining[0].gate.take_hedge() else None

        async with AsyncExitStack() as stack:
            won = await race(attempt, start_second, stack, late_after_s=hedge_after_s, clock=attempt.attempt.clock)
            if won is None:
                return None
            attempt, items = won
            self._winner = stack.pop_all()
            return attempt.attempt, items


class _RunningAttempt(PushSource[Item]):
    """A running attempt. Once `has_output` returns true, iterating yields all its items.

    The time limit between items runs only while the consumer waits for an item.
    """

    __slots__ = (
        "_buffer",
        "_buffer_size",
        "_due_from",
        "_is_recorded",
        "_loop",
        "_opened",
        "_record",
        "_release",
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
            attempt.strategy, attempt.stage, attempt.vendor, self.meter, attempt.price, started_at=self._started_at
        )
        self._is_recorded = False
        self._timeout = IdleTimeout(self._loop)
        self._release: Callable[[], None] | None = None
        """Releases the slot of the gate."""
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
        release, self._release = self._release, None
        try:
            if opened is not None:
                await opened.__aexit__(kind, error, trace)
        finally:
            if release is not None:
                release()
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
            attempt.gate.succeeded(now - self._due_from)
            metrics.had_output(attempt.stage, attempt.vendor, after_s=now - self._due_from)
            self._record.first_output_ms = round((now - self._started_at) * 1000)
            return True
        finally:
            self._timeout.done()
        await self.__aexit__()
        return False

    async def _first_output(self) -> AsyncIterator[Item]:
        attempt = self.attempt
        self._release = attempt.gate.try_acquire() or await attempt.gate.acquire(attempt.vendor)
        opening = attempt.open()
        items = await opening.__aenter__()
        self._opened = opening
        self._record.accepted = True
        async for item in items:
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
        if not self._is_recorded:
            self._record.outcome = "hedged"

    def failed(self, error: ServiceError) -> None:
        """Record and log the failure."""
        attempt = self.attempt
        error.redact(attempt.gate.secret)
        self._record.outcome = "failed"
        self._record.failure = Failure(error.error_type, str(error), error.retryable)
        attempt.gate.failed(error)
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
        if not self._is_recorded:
            self._is_recorded = True
            elapsed_s = self._loop.time() - self._started_at
            self._record.elapsed_ms = round(elapsed_s * 1000)
            attempt = self.attempt
            metrics.ended(attempt.stage, attempt.vendor, self._record.outcome, elapsed_s=elapsed_s)
