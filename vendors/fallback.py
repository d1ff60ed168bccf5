"""Strategies in order until one has output: one piece of code under every list of attempts (§4.19)."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass, field
from decimal import Decimal
from types import TracebackType
from typing import Any, Generic, Literal, Self, TypeVar

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

_HELD_ITEMS = 4096
_HELD_CHARACTERS = 4 * 1024 * 1024


@dataclass(slots=True)
class Attempt(Generic[Item]):
    """One strategy's try. `open` may raise at once: a broken config is a failed attempt.

    The first item for which `is_output` holds is the first output; what comes before it is held. `hedge`: after
    so many seconds without output the next attempt is started beside this one.

    `clock` is of attempts that hear an input: it returns at the input's end, and the times for the first output
    and for the hedge run from then on, the first longer by the seconds that it gives. `early`: the vendor is
    called before.
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


@dataclass(slots=True)
class AttemptRecord:
    """What became of one attempt: what happened, how long it took, what it used."""

    strategy: str
    stage: Stage
    vendor: str
    meter: Meter
    price: UnitPrice
    begun: float = 0
    """By `time.monotonic()`, which is the loop's clock too."""
    accepted: bool = False
    """Whether the vendor took the call: one that it refused used nothing."""
    outcome: Outcome = "canceled"
    error: ServiceError | None = None
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
        """As `attempts` of an error tell it."""
        assert self.error is not None, "only failures are as_error_detail"
        return {
            "strategy": self.strategy,
            "stage": self.stage,
            "error_type": self.error.error_type,
            "message": str(self.error),
            "elapsed_ms": self.elapsed_ms,
        }


def failed_attempt(strategy: str, stage: Stage, fault: ServiceError) -> Attempt[Any]:
    """The attempt of a strategy that cannot even be asked."""

    def refuse() -> AbstractAsyncContextManager[AsyncIterator[Any]]:
        raise fault.with_traceback(None)  # a kept fault must not gather the frames of every stream that meets it

    return Attempt(strategy, stage, metrics.NO_VENDOR, refuse, lambda _: True, first_output_s=1, between_s=1)


class AllStrategiesFailed(ServiceError):
    """No attempt had output; `extra.attempts` tells why, one by one."""

    error_type = "all_strategies_failed"

    def __init__(self, failures: Sequence[AttemptRecord]) -> None:
        names = ", ".join(failure.strategy for failure in failures) or "none"
        attempts = [failure.as_error_detail() for failure in failures]
        super().__init__(f"every strategy failed ({names})", extra={"attempts": attempts})
        self.retryable = any(failure.error is not None and failure.error.retryable for failure in failures)


class first_success(Generic[Item]):  # noqa: N801 - used as a function is
    """The first attempt that has output, and all its items from the first, for a block.

    Before its first output any failure means the next attempt; after it the failure is raised to the reader.
    Losers are closed before the block runs, the winner when it ends. Each attempt that was begun is added to
    `records`, which are complete once the block has ended.
    """

    __slots__ = ("_attempts", "_records", "_winner")

    def __init__(self, attempts: Sequence[Attempt[Item]], records: list[AttemptRecord] | None = None) -> None:
        self._attempts = attempts
        self._records: list[AttemptRecord] = [] if records is None else records

    async def __aenter__(self) -> tuple[Attempt[Item], AsyncIterator[Item]]:
        already = len(self._records)
        left = list(self._attempts)
        while left:
            attempt = _Try(left.pop(0), self._records)
            asked = attempt.attempt
            hedge_after_s = asked.gate.hedge_after_s(asked.hedge) if left else None
            if hedge_after_s is not None:
                if (won := await self._raced(attempt, left, hedge_after_s)) is not None:
                    return won
                continue
            self._winner: _Try[Item] | AsyncExitStack = attempt
            try:
                if await attempt.has_output():
                    return asked, attempt
            except BaseException as error:
                await attempt.__aexit__(type(error), error, error.__traceback__)
                raise
        failed = [record for record in self._records[already:] if record.outcome == "failed"]
        raise AllStrategiesFailed(failed)

    def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Coroutine[Any, Any, bool | None]:
        return self._winner.__aexit__(kind, error, trace)

    async def _raced(
        self, attempt: "_Try[Item]", left: list[Attempt[Item]], hedge_after_s: float
    ) -> tuple[Attempt[Item], AsyncIterator[Item]] | None:
        def start_second() -> _Try[Item] | None:
            return _Try(left.pop(0), attempt.records) if left[0].gate.take_hedge() else None

        async with AsyncExitStack() as stack:
            won = await race(attempt, start_second, stack, late_after_s=hedge_after_s, clock=attempt.attempt.clock)
            if won is None:
                return None
            attempt, items = won
            self._winner = stack.pop_all()
            return attempt.attempt, items


class _Try(PushSource[Item]):
    """One attempt under way, for a block; once it `has_output`, all its items from the first.

    The wait for the next item runs only while somebody waits for it.
    """

    __slots__ = (
        "_begun",
        "_due_from",
        "_held",
        "_held_size",
        "_leave",
        "_loop",
        "_opened",
        "_over",
        "_record",
        "_rest",
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
        self._begun = self._due_from = self._loop.time()
        self._record = AttemptRecord(
            attempt.strategy, attempt.stage, attempt.vendor, self.meter, attempt.price, begun=self._begun
        )
        self._over = False
        self._timeout = IdleTimeout(self._loop)
        self._leave: Callable[[], None] | None = None
        """Gives the place back that the gate gave."""
        self._opened: AbstractAsyncContextManager[AsyncIterator[Item]] | None = None
        self._held: list[Item] = []
        self._held_size = 0
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
        leave, self._leave = self._leave, None
        try:
            if opened is not None:
                await opened.__aexit__(kind, error, trace)
        finally:
            if leave is not None:
                leave()
            self._ended()

    async def has_output(self) -> bool:
        """Whether there was output. A failure is accounted for, and closed."""
        attempt, clock = self.attempt, self.attempt.clock
        if clock is not None and not attempt.early:
            await clock()  # a fault of the input is not this attempt's
        try:
            if clock is None:
                self._timeout.begin(attempt.first_output_s)
                self._rest = await self._asked()
            else:
                self._timeout.begin(None)
                async with background(self._at_the_end_of_input(clock)):
                    self._rest = await self._asked()
        except ServiceError as error:
            self.failed(error)
        except (TimeoutError, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError) and not self._timeout.over():
                raise
            self.failed(TimedOut(attempt.vendor, f"had no output in {attempt.first_output_s:g} s", retryable=True))
        else:
            now = self._loop.time()
            attempt.gate.answered(now - self._due_from)
            metrics.had_output(attempt.stage, attempt.vendor, after_s=now - self._due_from)
            self._record.first_output_ms = round((now - self._begun) * 1000)
            return True
        finally:
            self._timeout.done()
        await self.__aexit__()
        return False

    async def _asked(self) -> AsyncIterator[Item]:
        attempt = self.attempt
        self._leave = attempt.gate.take() or await attempt.gate.enter(attempt.vendor)
        opening = attempt.open()
        items = await opening.__aenter__()
        self._opened = opening
        self._record.accepted = True
        async for item in items:
            self.meter.saw(item)
            self._hold(item)
            if attempt.is_output(item):
                return items
        raise Empty(attempt.vendor, "answered with nothing")

    def _hold(self, item: Item) -> None:
        """Keep an item for who reads them all; not what was heard so far, which the next one says again."""
        if isinstance(item, Transcript) and not item.final:
            return
        self._held.append(item)
        self._held_size += len(getattr(item, "text", ""))
        if len(self._held) > _HELD_ITEMS or self._held_size > _HELD_CHARACTERS:
            raise Garbled(self.attempt.vendor, "sent too much that is no output", retryable=True)

    async def _at_the_end_of_input(self, clock: Clock) -> None:
        longer_s = await clock()
        self._timeout.limit(self.attempt.first_output_s + longer_s)
        self._due_from = self._timeout.since

    async def __anext__(self) -> Item:
        if self._held:
            return self._held.pop(0)
        try:
            item = await self._in_time(anext(self._rest))
        except StopAsyncIteration:
            self._record.outcome = "won"
            raise
        self.meter.saw(item)
        return item

    async def push_to(self, sink: Sink[Item]) -> bool:
        while self._held:
            if not sink(self._held.pop(0)):
                return True
        saw, timeout, now = self.meter.saw, self._timeout, self._loop.time

        def took(item: Item) -> bool:
            timeout.since = now()
            saw(item)
            return sink(item)

        stopped = await self._in_time(drain_into(self._rest, took))
        if not stopped:
            self._record.outcome = "won"
        return stopped

    async def _in_time(self, waiting: Awaitable[T]) -> T:
        attempt = self.attempt
        self._timeout.begin(attempt.between_s)
        try:
            return await waiting
        except asyncio.CancelledError:
            if not self._timeout.over():
                raise
            silent = TimedOut(attempt.vendor, f"was silent for {attempt.between_s:g} s", retryable=True)
            self.failed(silent)
            raise silent from None
        except ServiceError as error:
            self.failed(error)
            raise
        finally:
            self._timeout.done()

    def lost(self) -> None:
        """Another attempt was faster."""
        if not self._over:
            self._record.outcome = "hedged"

    def failed(self, error: ServiceError) -> None:
        """It is over, for this reason."""
        attempt = self.attempt
        error.redact(attempt.gate.secret)
        self._record.outcome, self._record.error = "failed", error
        attempt.gate.failed(error)
        self._ended()
        where = {}
        if isinstance(error, VendorError) and error.address:
            where = {"address": error.address, "detail": error.detail}
        log.warning(
            "attempt.failed",
            strategy=attempt.strategy,
            stage=attempt.stage,
            vendor=attempt.vendor,
            error=str(error),
            elapsed_ms=self._record.elapsed_ms,
            **where,
        )

    def _ended(self) -> None:
        if not self._over:
            self._over = True
            elapsed_s = self._loop.time() - self._begun
            self._record.elapsed_ms = round(elapsed_s * 1000)
            attempt = self.attempt
            metrics.ended(attempt.stage, attempt.vendor, self._record.outcome, elapsed_s=elapsed_s)
