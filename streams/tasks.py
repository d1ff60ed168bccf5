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


async def unless_failed(task: asyncio.Task[Any], coro: Coroutine[Any, Any, T]) -> T:
    """What `coro` gives; it is cut as soon as `task` fails, whose fault is raised then."""
    owner = asyncio.current_task()
    assert owner is not None, "a coroutine of a task"
    cut = over = False

    def ended(task: asyncio.Task[Any]) -> None:
        nonlocal cut
        if not over and not task.cancelled() and task.exception() is not None:
            cut = True
            owner.cancel()

    task.add_done_callback(ended)
    try:
        return await coro
    except asyncio.CancelledError:
        if not cut or owner.cancelling() > 1:  # it is told to end by others
            raise
    finally:
        over = True  # the callback may be under way
        task.remove_done_callback(ended)
        if cut:
            owner.uncancel()
    raise task.exception() or AssertionError("a task without a fault cuts nothing")


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
