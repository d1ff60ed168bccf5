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


class BulkheadFull(Exception):
    """As many wait as may wait."""


class Bulkhead:
    """At most `at_once` calls side by side, and a bounded number of others waiting, first come first served."""

    def __init__(self, at_once: int, waiting: int) -> None:
        self._at_once = at_once
        self._waiting_limit = waiting
        self._queue: deque[asyncio.Future[None]] = deque()
        self.busy = 0

    @property
    def waiting(self) -> int:
        return len(self._queue)

    def take(self) -> bool:
        """Take a place, which `leave` gives back; whether there is one that nobody waits for."""
        if self.busy >= self._at_once or self._queue:
            return False
        self.busy += 1
        return True

    async def enter(self) -> None:
        """Take a place as soon as there is one; `BulkheadFull` where too many wait for one."""
        if self.take():
            return
        if len(self._queue) >= self._waiting_limit:
            raise BulkheadFull
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.append(place)
        try:
            await place
        except asyncio.CancelledError:
            if place in self._queue:
                self._queue.remove(place)
            elif not place.cancelled():  # it was given, and is not wanted any more
                self.leave()
            raise

    def leave(self) -> None:
        """Give a place back: to who has waited longest, if anybody waits."""
        while self._queue:
            place = self._queue.popleft()
            if not place.done():
                place.set_result(None)
                return
        self.busy -= 1
