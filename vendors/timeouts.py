"""A limit on each of many waits of one task, without a timer for each: one timer, moved on when it is early."""

import asyncio
from math import inf

_STALLED_S = 0.25
_LOOK_AGAIN_S = 0.5


class IdleTimeout:
    """`begin`, wait, `done`. A wait that lasts over its limit is cancelled, and `over` tells that it was so.

    A wait that ended leaves its timer behind, which finds that nothing is due or puts itself off.

    A timer that fires late shows that the loop stood still: the process was stopped, or starved. What arrived
    meanwhile may not have been read yet, so that wait is checked once more before it is cancelled.
    """

    __slots__ = ("_before", "_cut", "_excused", "_limit_s", "_loop", "_task", "_timer", "_timer_at", "since")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.since = 0.0
        """From when on the limit runs, by the loop's clock. Who sets it anew lets the wait go on."""
        self._loop = loop
        self._limit_s: float | None = None
        self._task: asyncio.Task[object] | None = None
        self._before = 0
        """How often the task was told to end before it waited."""
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = inf
        self._cut = False
        self._excused = -inf
        """The `since` of the wait that was given more time because the loop stood still."""

    def begin(self, limit_s: float | None) -> None:
        """The running task waits; without a limit until `limit` sets one."""
        self._task = task = asyncio.current_task()
        assert task is not None, "a coroutine of a task"
        self._before = task.cancelling()
        if limit_s is not None:
            self.limit(limit_s)

    def limit(self, limit_s: float) -> None:
        """The wait may last so long from now on."""
        self._limit_s = limit_s
        self.since = self._loop.time()
        if self.since + limit_s < self._timer_at:
            self._set_timer(self.since + limit_s)

    def done(self) -> None:
        """The wait is over, however it ended."""
        self._limit_s = None
        if self._cut:
            self.over()

    def over(self) -> bool:
        """Whether the cancellation that ended the wait was this one alone."""
        if not self._cut or self._task is None:
            return False
        self._cut = False
        return self._task.uncancel() <= self._before

    def stop(self) -> None:
        """There will be no wait any more."""
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
        if late_s > _STALLED_S and self._excused != self.since:
            self._excused = self.since
            self._set_timer(self._loop.time() + _LOOK_AGAIN_S)
            return
        self._cut = True
        self._task.cancel()
