"""A timeout for each of many waits of one task that uses a single timer and re-arms it only when it fires."""

import asyncio
from math import inf

_STALLED_S = 0.25
_EXTENSION_S = 0.5


class IdleTimeout:
    """Cancels a wait of the current task that exceeds its limit. Call `begin`, wait, then call `done`.

    After a `CancelledError`, `expired` returns whether this timeout caused it. A wait that ends in time leaves the
    timer running. When it fires, it does nothing or re-arms itself for the current wait.

    A timer that fires late shows that the event loop was blocked or the process was suspended. Data that arrived
    meanwhile may not have been read yet, so the wait gets a short extension once before it is cancelled.
    """

    __slots__ = (
        "_cancelled",
        "_extended_since",
        "_limit_s",
        "_loop",
        "_prior_cancels",
        "_task",
        "_timer",
        "_timer_at",
        "since",
    )

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.since = 0.0
        """When the current wait started, by the loop's clock. Setting it extends the wait."""
        self._loop = loop
        self._limit_s: float | None = None
        self._task: asyncio.Task[object] | None = None
        self._prior_cancels = 0
        """The task's count of cancellation requests before the wait."""
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = inf
        self._cancelled = False
        self._extended_since = -inf
        """The `since` of the wait that was extended because the loop was blocked."""

    def begin(self, limit_s: float | None) -> None:
        """Start a wait of the current task. With `None`, it has no limit until `limit` is called."""
        self._task = task = asyncio.current_task()
        assert task is not None, "must be called in a task"
        self._prior_cancels = task.cancelling()
        if limit_s is not None:
            self.limit(limit_s)

    def limit(self, limit_s: float) -> None:
        """Limit the wait to `limit_s` seconds from now."""
        self._limit_s = limit_s
        self.since = self._loop.time()
        if self.since + limit_s < self._timer_at:
            self._set_timer(self.since + limit_s)

    def done(self) -> None:
        """End the wait, whatever its result."""
        self._limit_s = None
        if self._cancelled:
            self.expired()

    def expired(self) -> bool:
        """Return whether this timeout alone cancelled the wait."""
        if not self._cancelled or self._task is None:
            return False
        self._cancelled = False
        return self._task.uncancel() <= self._prior_cancels

    def stop(self) -> None:
        """Cancel the timer. No wait may follow."""
        self._limit_s = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer, self._timer_at = None, inf

    def _set_timer(self, at: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._timer_at = self._loop.call_at(at, self._check), at

    def _check(self) -> None:
        late_s = self._loop.time() - self._timer_at
        self._timer, self._timer_at = None, inf
        if self._limit_s is None or self._task is None:
            return
        due = self.since + self._limit_s
        if self._loop.time() + 0.001 < due:
            self._set_timer(due)
            return
        if late_s > _STALLED_S and self._extended_since != self.since:
            self._extended_since = self.since
            self._set_timer(self._loop.time() + _EXTENSION_S)
            return
        self._cancelled = True
        self._task.cancel()
