"""A circuit breaker and a bulkhead: they stop calls to a failing vendor account and bound concurrent calls."""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BreakerPolicy:
    """When the breaker opens, and for how long.

    It opens if at least `min_calls` calls ended in the last `window_s` seconds and `failure_ratio` of them failed.
    It stays open for `open_s` seconds.
    """

    failure_ratio: float = 0.5
    min_calls: int = 10
    window_s: float = 30
    open_s: float = 10


class Breaker:
    """A circuit breaker: closed, then open for `open_s`, then half-open until one probe succeeds or fails."""

    def __init__(self, policy: BreakerPolicy, clock: Callable[[], float]) -> None:
        self._policy = policy
        self._clock = clock
        self._outcomes: deque[tuple[float, bool]] = deque()
        self._failures = 0
        self._opened_at: float | None = None
        self._probing = False

    @property
    def open(self) -> bool:
        """Whether calls are rejected now."""
        if self._opened_at is None:
            return False
        return self._probing or self._clock() - self._opened_at < self._policy.open_s

    @property
    def tripped(self) -> bool:
        """Whether the breaker is open or half-open. The next call that it allows is a probe."""
        return self._opened_at is not None

    def allow(self) -> bool:
        """Return whether a call may be made. In the half-open state that call is the probe.

        An allowed call reports `succeeded` or `failed`. A probe that has no result calls `abandon`.
        """
        if self.open:
            return False
        self._probing = self._opened_at is not None
        return True

    def succeeded(self, *, probe: bool = False) -> None:
        if probe:
            self._opened_at, self._probing = None, False
            self._outcomes.clear()
            self._failures = 0
        if self._opened_at is None:
            self._record(failed=False)

    def failed(self, *, probe: bool = False) -> None:
        """Record the failure of a call. While the breaker is not closed, only that of the probe counts."""
        if probe:
            self._opened_at, self._probing = self._clock(), False
        elif self._opened_at is None:
            self._record(failed=True)
            count = len(self._outcomes)
            if count >= self._policy.min_calls and self._failures >= self._policy.failure_ratio * count:
                self._opened_at = self._clock()

    def abandon(self) -> None:
        """End a probe without a result, so that the next call can be the probe."""
        self._probing = False

    def _record(self, *, failed: bool) -> None:
        now = self._clock()
        self._outcomes.append((now, failed))
        self._failures += failed
        while self._outcomes[0][0] < now - self._policy.window_s:
            self._failures -= self._outcomes.popleft()[1]


class BulkheadFull(Exception):
    """The queue of waiting calls is full."""


class Bulkhead:
    """Allows at most `concurrency` concurrent calls. Up to `waiting` more calls wait in FIFO order."""

    def __init__(self, concurrency: int, waiting: int) -> None:
        self._concurrency = concurrency
        self._waiting_limit = waiting
        self._queue: deque[asyncio.Future[None]] = deque()
        self.busy = 0

    @property
    def waiting(self) -> int:
        return len(self._queue)

    def try_acquire(self) -> bool:
        """Take a slot if one is free and no call waits for it. Return whether a slot was taken."""
        if self.busy >= self._concurrency or self._queue:
            return False
        self.busy += 1
        return True

    async def acquire(self) -> None:
        """Wait for a slot and take it. Raise `BulkheadFull` if too many calls already wait."""
        if self.try_acquire():
            return
        if len(self._queue) >= self._waiting_limit:
            raise BulkheadFull
        slot: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.append(slot)
        try:
            await slot
        except asyncio.CancelledError:
            if slot in self._queue:
                self._queue.remove(slot)
            elif not slot.cancelled():  # The slot was assigned before the cancellation: pass it on.
                self.release()
            raise

    def release(self) -> None:
        """Return a slot. The call that has waited longest receives it."""
        while self._queue:
            slot = self._queue.popleft()
            if not slot.done():
                slot.set_result(None)
                return
        self.busy -= 1
