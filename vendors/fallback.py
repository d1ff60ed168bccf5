"""Strategies in order until one has output: one piece of code under every list of attempts (§4.19)."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Generic, Literal, TypeVar

import structlog

from streams.pouring import Pouring, Take, poured
from streams.tasks import background
from streams.wire.errors import ServiceError
from vendors import tally
from vendors.errors import Empty, Garbled, TimedOut
from vendors.gate import Gate, GatePolicy, Hedge
from vendors.meter import FREE, Meter, UnitPrice
from vendors.patience import Patience
from vendors.protocols import Transcript, Usage

log = structlog.get_logger()

Stage = Literal["stt", "llm", "tts", "assess"]
Outcome = Literal["won", "failed", "hedged", "canceled"]
Item = TypeVar("Item")
T = TypeVar("T")
Clock = Callable[[], Coroutine[Any, Any, float]]
_Read = Callable[[], "AsyncGenerator[Item] | _Items[Item]"]
Opener = Callable[[], AbstractAsyncContextManager[AsyncIterator[Item]]]

_HELD_ITEMS = 4096
_HELD_CHARACTERS = 4 * 1024 * 1024
_AHEAD = 16
"""Items that a raced winner may read before they are taken."""


@dataclass(frozen=True, slots=True)
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
class Account:
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
        return self.price.input * self.usage.input_token + self.price.output * self.usage.output_token

    def told(self) -> dict[str, Any]:
        """As `attempts` of an error tell it."""
        assert self.error is not None, "only failures are told"
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

    return Attempt(strategy, stage, tally.NO_VENDOR, refuse, lambda _: True, first_output_s=1, between_s=1)


class AllStrategiesFailed(ServiceError):
    """No attempt had output; `extra.attempts` tells why, one by one."""

    error_type = "all_strategies_failed"

    def __init__(self, failures: Sequence[Account]) -> None:
        names = ", ".join(failure.strategy for failure in failures) or "none"
        attempts = [failure.told() for failure in failures]
        super().__init__(f"every strategy failed ({names})", extra={"attempts": attempts})
        self.retryable = any(failure.error is not None and failure.error.retryable for failure in failures)


@asynccontextmanager
async def first_success(
    attempts: Sequence[Attempt[Item]], accounts: list[Account] | None = None
) -> AsyncIterator[tuple[Attempt[Item], AsyncIterator[Item]]]:
    """The first attempt that has output, and all its items from the first.

    Before its first output any failure means the next attempt; after it the failure is raised to the reader.
    Losers are closed before the block runs, the winner when it ends. Each attempt that was begun is added to
    `accounts`, which are complete once the block has ended.
    """
    begun: list[Account] = [] if accounts is None else accounts
    already = len(begun)
    left = list(attempts)
    while left:
        async with AsyncExitStack() as stack:
            asked = left.pop(0)
            attempt = _Try(asked, begun)
            hedge_after_s = asked.gate.hedge_after_s(asked.hedge) if left else None
            if hedge_after_s is None:
                won = attempt if await attempt.has_output(stack) else None
                read: _Read[Item] = attempt.items
            else:
                won, read = await _race(attempt, left, hedge_after_s, stack)
            if won is not None:
                async with aclosing(read()) as items:
                    yield won.attempt, items
                return
    raise AllStrategiesFailed([account for account in begun[already:] if account.outcome == "failed"])


class _Try(Generic[Item]):
    """One attempt under way."""

    def __init__(self, attempt: Attempt[Item], accounts: list[Account]) -> None:
        self.attempt = attempt
        self._loop = asyncio.get_running_loop()
        self._begun = self._loop.time()
        self._due_from = self._begun
        self.meter = attempt.meter()
        self._account = Account(
            attempt.strategy, attempt.stage, attempt.vendor, self.meter, attempt.price, begun=self._begun
        )
        self.accounts = accounts
        self._over = False
        self._held: list[Item] = []
        self._held_size = 0
        self._rest: AsyncIterator[Item] | None = None
        accounts.append(self._account)

    async def has_output(self, stack: AsyncExitStack) -> bool:
        """Whether there was output; what is to be closed is `stack`'s. A failure is accounted for."""
        stack.callback(self._ended)
        if self.attempt.clock is not None and not self.attempt.early:
            await self.attempt.clock()  # a fault of the input is not this attempt's
        try:
            self._rest = await self._first_output(stack)
        except ServiceError as error:
            self.failed(error)
            await stack.aclose()
            return False
        after_s = self._loop.time() - self._due_from
        self.attempt.gate.answered(after_s)
        tally.had_output(self.attempt.stage, self.attempt.vendor, after_s=after_s)
        self._account.first_output_ms = self._elapsed_ms()
        return True

    async def _first_output(self, stack: AsyncExitStack) -> AsyncIterator[Item]:
        attempt = self.attempt
        try:
            if attempt.clock is None:
                async with asyncio.timeout(attempt.first_output_s):
                    return await self._asked(stack)
            async with (
                asyncio.timeout(None) as limit,
                background(self._at_the_end_of_input(attempt.clock, limit)),
            ):
                return await self._asked(stack)
        except TimeoutError:
            raise TimedOut(
                attempt.vendor, f"had no output in {attempt.first_output_s:g} s", retryable=True
            ) from None

    async def _asked(self, stack: AsyncExitStack) -> AsyncIterator[Item]:
        attempt = self.attempt
        stack.callback(await attempt.gate.enter(attempt.vendor))
        items = await stack.enter_async_context(attempt.open())
        self._account.accepted = True
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

    async def _at_the_end_of_input(self, clock: Clock, limit: asyncio.Timeout) -> None:
        longer_s = await clock()
        self._due_from = self._loop.time()
        limit.reschedule(self._due_from + self.attempt.first_output_s + longer_s)

    def items(self) -> "_Items[Item]":
        """All items from the first, once there is output."""
        assert self._rest is not None, "there is none"
        return _Items(self, self._held, self._rest)

    def won(self) -> None:
        """It was read to its end."""
        self._account.outcome = "won"

    def lost(self) -> None:
        """Another attempt was faster."""
        if not self._over:
            self._account.outcome = "hedged"

    def failed(self, error: ServiceError) -> None:
        error.redact(self.attempt.gate.secret)
        self._account.outcome, self._account.error = "failed", error
        self.attempt.gate.failed(error)
        self._ended()
        log.warning(
            "attempt.failed",
            strategy=self.attempt.strategy,
            stage=self.attempt.stage,
            vendor=self.attempt.vendor,
            error=str(error),
            elapsed_ms=self._account.elapsed_ms,
        )

    def _ended(self) -> None:
        if not self._over:
            self._over = True
            self._account.elapsed_ms = self._elapsed_ms()
            attempt = self.attempt
            elapsed_s = self._loop.time() - self._begun
            tally.ended(attempt.stage, attempt.vendor, self._account.outcome, elapsed_s=elapsed_s)

    def _elapsed_ms(self) -> int:
        return round((self._loop.time() - self._begun) * 1000)


class _Items(Pouring[Item]):
    """The wait for the next item runs only while somebody waits for it."""

    def __init__(self, attempt: _Try[Item], held: list[Item], rest: AsyncIterator[Item]) -> None:
        self._try = attempt
        self._held = held
        self._rest = rest
        self._patience = Patience(attempt.attempt.between_s)

    async def __anext__(self) -> Item:
        if self._held:
            return self._held.pop(0)
        try:
            item = await self._patiently(anext(self._rest))
        except StopAsyncIteration:
            self._try.won()
            raise
        self._try.meter.saw(item)
        return item

    async def pour(self, take: Take[Item]) -> bool:
        while self._held:
            if not take(self._held.pop(0)):
                return True
        saw, renew = self._try.meter.saw, self._patience.renew

        def took(item: Item) -> bool:
            renew()
            saw(item)
            return take(item)

        stopped = await self._patiently(poured(self._rest, took))
        if not stopped:
            self._try.won()
        return stopped

    async def aclose(self) -> None:
        self._patience.stop()

    async def _patiently(self, waiting: Awaitable[T]) -> T:
        self._patience.begin()
        try:
            return await waiting
        except asyncio.CancelledError:
            if not self._patience.over():
                raise
            attempt = self._try.attempt
            silent = TimedOut(attempt.vendor, f"was silent for {attempt.between_s:g} s", retryable=True)
            self._try.failed(silent)
            raise silent from None
        except ServiceError as error:
            self._try.failed(error)
            raise
        finally:
            self._patience.done()


async def _race(
    leader: _Try[Item], left: list[Attempt[Item]], hedge_after_s: float, stack: AsyncExitStack
) -> tuple[_Try[Item] | None, "_Read[Item]"]:
    """Run `leader`, and beside it the next of `left` when it is late; the first with output wins.

    A leader that fails in time leaves `left` as it is.
    """
    first = _Runner(leader)
    await first.begin(stack)
    if leader.attempt.clock is not None:
        async with background(leader.attempt.clock()) as clock:
            either: list[asyncio.Future[Any]] = [first.output, clock]
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
    done, _ = await asyncio.wait([first.output], timeout=hedge_after_s)
    if done or not left[0].gate.take_hedge():
        return (leader if await first.output else None), first.items
    second = _Runner(_Try(left.pop(0), leader.accounts))
    await second.begin(stack)
    running = {runner.output: runner for runner in (first, second)}
    while running:
        done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
        for output in sorted(done, key=lambda output: running[output] is second):
            runner = running.pop(output)
            if output.result():
                for loser in running.values():
                    await loser.lose()
                return runner.attempt, runner.items
    return None, first.items


class _Runner(Generic[Item]):
    """An attempt in a task of its own: opened, read and closed there."""

    def __init__(self, attempt: _Try[Item]) -> None:
        self.attempt = attempt
        self.output: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._items: asyncio.Queue[Item | ServiceError | None] = asyncio.Queue(_AHEAD)
        self._stack = AsyncExitStack()

    async def begin(self, stack: AsyncExitStack) -> None:
        await stack.enter_async_context(self._stack)
        await self._stack.enter_async_context(background(self._run()))

    async def lose(self) -> None:
        self.attempt.lost()
        await self._stack.aclose()

    async def items(self) -> AsyncGenerator[Item]:
        while (item := await self._items.get()) is not None:
            if isinstance(item, ServiceError):
                raise item
            yield item

    async def _run(self) -> None:
        async with AsyncExitStack() as own:
            try:
                has_output = await self.attempt.has_output(own)
            except BaseException as error:
                if not self.output.done() and isinstance(error, Exception):
                    self.output.set_exception(error)
                raise
            self.output.set_result(has_output)
            if not has_output:
                return
            try:
                async with aclosing(self.attempt.items()) as items:
                    async for item in items:
                        await self._items.put(item)
            except ServiceError as error:
                await self._items.put(error)
            else:
                await self._items.put(None)
