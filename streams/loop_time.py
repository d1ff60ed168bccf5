"""Divides the time of the event loop among tasks that process large pieces of data."""

import asyncio
import time

_ITERATION_S = 0.002


class _Iteration:
    """The iteration of the event loop that last gave a task time for a large piece."""

    loop: asyncio.AbstractEventLoop | None = None
    """None once the iteration has ended."""
    began_s = 0.0

    def end(self) -> None:
        self.loop = None


_iteration = _Iteration()


async def wait_for_loop_time() -> None:
    """Wait until the current iteration of the event loop has time for another large piece.

    An iteration has 2 ms for all of them, counted from the first. If many connections receive large pieces at once,
    processing all of them in one iteration would delay every other task by 100 ms and more.
    """
    loop = asyncio.get_running_loop()
    while _iteration.loop is loop and time.monotonic() - _iteration.began_s > _ITERATION_S:  # noqa: ASYNC110
        await asyncio.sleep(0)
    if _iteration.loop is not loop:
        _iteration.loop = loop
        _iteration.began_s = time.monotonic()
        loop.call_soon(_iteration.end)
