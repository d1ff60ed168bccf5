"""Keeps calls away from a vendor account that fails, and within what it takes at once."""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BreakerPolicy:
    """Open when at least `min_calls` of the last `window_s` had an outcome and `failure_ratio` of them failed."""

    failure_ratio: float = 0.5
    min_calls: int = 10
    window_s: float = 30
    open_s: float = 10


class Breaker:
    """Closed; open for `open_s`; then half-open: one probe decides. Pure but for the clock it is given."""

    def __init__(self, policy: BreakerPolicy, clock: Callable[[], float]) -> None:
        self._policy = policy
        self._clock = clock
        self._outcomes: deque[tuple[float, bool]] = deque()
        self._failures = 0
        self._opened_at: float | None = None
        self._probing = False

    @property
    def open(self) -> bool:
        """Whether calls are skipped at the moment."""
        if self._opened_at is None:
            return False
        return self._probing or self._clock() - self._opened_at < self._policy.open_s

    @property
    def tripped(self) -> bool:
        """Whether it is not closed: a call that is let through now is a probe."""
        return self._opened_at is not None

    def take(self) -> bool:
        """Whether a call may be made; in the half-open state the caller becomes the probe.

        Who was let through tells `succeeded` or `failed`; a probe without either tells `gave_up`.
        """
        if self.open:
            return False
        self._probing = self._opened_at is not None
        return True

    def succeeded(self) -> None:
        if self._opened_at is not None:
            self._opened_at, self._probing = None, False
            self._outcomes.clear()
            self._failures = 0
        self._note(failed=False)

    def failed(self) -> None:
        if self._opened_at is not None:
            self._opened_at, self._probing = self._clock(), False
            return
        self._note(failed=True)
        count = len(self._outcomes)
        if count >= self._policy.min_calls and self._failures >= self._policy.failure_ratio * count:
            self._opened_at = self._clock()

    def gave_up(self) -> None:
        """The probe was ended by us: it says nothing about the vendor."""
        self._probing = False

    def _note(self, *, failed: bool) -> None:
        now = self._clock()
        self._outcomes.append((now, failed))
        self._failures += failed
        while self._outcomes[0][0] < now - self._policy.window_s:
            self._failures -= self._outcomes.popleft()[1]


class LaneFull(Exception):
    """As many wait as may wait."""


class Lane:
    """At most `at_once` calls side by side, and a bounded number of others waiting."""

    def __init__(self, at_once: int, waiting: int) -> None:
        self._free = asyncio.Semaphore(at_once)
        self._waiting_limit = waiting
        self.waiting = 0
        self.busy = 0

    async def enter(self) -> None:
        """Take a place, which `leave` gives back; `LaneFull` where too many wait for one."""
        if self._free.locked():
            if self.waiting >= self._waiting_limit:
                raise LaneFull
            self.waiting += 1
            try:
                await self._free.acquire()
            finally:
                self.waiting -= 1
        else:
            await self._free.acquire()
        self.busy += 1

    def leave(self) -> None:
        self.busy -= 1
        self._free.release()
