"""A limit on each of many waits of one task, without a timer for each: one timer, moved on when it is early."""

import asyncio


class Patience:
    """`begin`, wait, `done`. A wait that lasts over `limit_s` is cancelled, and `over` tells that it was so.

    A wait that ended leaves its timer behind, which finds that nothing is due or puts itself off.
    """

    __slots__ = ("_cut", "_due", "_limit_s", "_loop", "_task", "_timer")

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[object] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._due: float | None = None
        self._cut = False

    def begin(self) -> None:
        self._task = asyncio.current_task()
        self._due = self._loop.time() + self._limit_s
        if self._timer is None:
            self._timer = self._loop.call_at(self._due, self._check)

    def renew(self) -> None:
        """What was waited for came, and the wait goes on for the next."""
        if self._due is not None:
            self._due = self._loop.time() + self._limit_s

    def done(self) -> None:
        self._due = None

    def over(self) -> bool:
        """Whether the cancellation that ended the wait was this one alone."""
        if not self._cut or self._task is None:
            return False
        self._cut = False
        return self._task.uncancel() == 0

    def stop(self) -> None:
        self._due = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _check(self) -> None:
        self._timer = None
        if self._due is None or self._task is None:
            return
        if self._loop.time() + 0.001 < self._due:
            self._timer = self._loop.call_at(self._due, self._check)
            return
        self._cut = True
        self._task.cancel()
