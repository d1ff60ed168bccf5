"""Fallback: try strategies in order until one has output. Used for every kind of attempt (§4.19)."""

from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any, Generic

from streams.wire.errors import ServiceError
from vendors.calls.attempts import Attempt, AttemptRecord, Item
from vendors.calls.hedging import race
from vendors.calls.running_attempt import RunningAttempt


class AllStrategiesFailed(ServiceError):
    """No strategy had any output. `extra.attempts` has the error of each."""

    error_type = "all_strategies_failed"
    status = 502

    def __init__(self, failures: Sequence[AttemptRecord]) -> None:
        names = ", ".join(failure.strategy for failure in failures) or "none"
        attempts = [failure.as_error_detail() for failure in failures]
        known = [record.failure for record in failures if record.failure is not None]
        waits_s = [failure.retry_after_s for failure in known if failure.retry_after_s is not None]
        super().__init__(
            f"every strategy failed ({names})",
            extra={"attempts": attempts},
            retry_after_s=min(waits_s, default=None),
        )
        self.retryable = any(failure.retryable for failure in known)


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
            attempt = RunningAttempt(remaining.pop(0), self._records)
            candidate = attempt.attempt
            hedge_after_s = candidate.gate.hedge_after_s(candidate.hedge) if remaining else None
            if hedge_after_s is not None:
                if (won := await self._race(attempt, remaining, hedge_after_s)) is not None:
                    return won
                continue
            self._winner: RunningAttempt[Item] | AsyncExitStack = attempt
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
        self, attempt: RunningAttempt[Item], remaining: list[Attempt[Item]], hedge_after_s: float
    ) -> tuple[Attempt[Item], AsyncIterator[Item]] | None:
        def start_second() -> RunningAttempt[Item] | None:
            return RunningAttempt(remaining.pop(0), attempt.records) if remaining[0].gate.take_hedge() else None

        async with AsyncExitStack() as stack:
            won = await race(attempt, start_second, stack, late_after_s=hedge_after_s, clock=attempt.attempt.clock)
            if won is None:
                return None
            attempt, items = won
            self._winner = stack.pop_all()
            return attempt.attempt, items
