"""Tasks with an owner: the only way, beside the supervisor, that one is made."""

import asyncio
from collections.abc import Coroutine
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class background(Generic[T]):  # noqa: N801 - used as a function is
    """Run a coroutine beside the block and end it with the block.

    The task is cancelled and awaited when the block is left. Its own fault is raised at the end of a block that
    went well (a block that failed raises its own); `await task` in the block raises it there.
    """

    __slots__ = ("_coro", "_task")

    def __init__(self, coro: Coroutine[Any, Any, T]) -> None:
        self._coro = coro

    async def __aenter__(self) -> asyncio.Task[T]:
        return self.start()

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        task = self._task
        await self.stop()
        if not task.cancelled() and (fault := task.exception()) is not None and kind is None:
            raise fault

    def start(self) -> asyncio.Task[T]:
        """For an owner that is no block, and will `stop` it."""
        self._task = asyncio.create_task(self._coro)  # noqa: TID251 - awaited in `stop`, whatever happens
        return self._task

    async def stop(self) -> None:
        """End it, and see it ended; its own fault is not raised."""
        if not self._task.done():
            await _stopped(self._task)
        elif not self._task.cancelled():
            self._task.exception()  # seen

    async def end_within(self, wait_s: float) -> None:
        """Wait for it so long, then end it as `stop` does."""
        try:
            await asyncio.wait([self._task], timeout=wait_s)
        finally:
            await self.stop()


class unless_failed:  # noqa: N801 - used as a function is
    """Cut the block as soon as a task or future beside it fails, whose fault is raised then.

    A block that ends well all the same has not been cut.
    """

    __slots__ = ("_beside", "_cut", "_over", "_owner")

    def __init__(self, beside: asyncio.Future[Any]) -> None:
        self._beside = beside
        self._cut = self._over = False

    def __enter__(self) -> None:
        owner = asyncio.current_task()
        assert owner is not None, "a block of a task"
        self._owner = owner
        self._beside.add_done_callback(self._ended)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._over = True  # the callback may be under way
        self._beside.remove_done_callback(self._ended)
        if not self._cut:
            return
        self._owner.uncancel()
        if kind is asyncio.CancelledError and not self._owner.cancelling():  # else it is told to end by others
            raise self._beside.exception() or AssertionError("what has no fault cuts nothing") from None

    def _ended(self, beside: asyncio.Future[Any]) -> None:
        if not self._over and not beside.cancelled() and beside.exception() is not None:
            self._cut = True
            self._owner.cancel()


def stopping() -> bool:
    """Whether the running task was told to end: what a loop asks before it goes on.

    On Python 3.11 `asyncio.wait_for`, and what is built on it, can lose a cancellation that comes just as it ends.
    """
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def _stopped(task: asyncio.Task[Any]) -> None:
    task.cancel()
    interrupted: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            interrupted = error  # told on once the task has cleaned up: nobody else waits for it
    if not task.cancelled():
        task.exception()  # seen: it is raised, or gives way to the block's own
    if interrupted is not None:
        raise interrupted
