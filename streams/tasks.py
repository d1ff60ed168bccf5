"""Tasks with an owner. All tasks are created here or by the supervisor."""

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class background(Generic[T]):  # noqa: N801 - it is used like a function
    """Run a coroutine concurrently with the block of an `async with`.

    The task is cancelled and awaited at the end of the block. If the block raises no exception, an exception of
    the task is raised there. `await task` within the block raises it earlier.
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
            try:
                raise fault
            finally:
                del fault, task, self  # The traceback refers to this frame: variables would close a cycle.

    def start(self) -> asyncio.Task[T]:
        """Start the task without a block. The caller must call `stop` or `end_within`."""
        self._task = asyncio.create_task(self._coro)  # noqa: TID251 - `stop` awaits it in every case
        return self._task

    async def stop(self) -> None:
        """Cancel the task and wait until it has ended. Its exception is not raised."""
        if not self._task.done():
            await _cancel_and_wait(self._task)
        elif not self._task.cancelled():
            self._task.exception()  # Mark it as retrieved, so that asyncio does not log it.

    async def end_within(self, wait_s: float) -> None:
        """Wait up to `wait_s` seconds for the task to end, then stop it."""
        try:
            await asyncio.wait([self._task], timeout=wait_s)
        finally:
            await self.stop()


async def run_all(coros: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Run coroutines concurrently until all have ended, then raise the exception of the first that failed."""
    for result in await asyncio.gather(*coros, return_exceptions=True):
        if result is not None:
            raise result


class unless_failed:  # noqa: N801 - it is used like a function
    """Cancel the block as soon as `future` fails, and raise the exception of `future` instead.

    If the block completes despite the cancellation, nothing is raised.
    """

    __slots__ = ("_cancelled", "_future", "_over", "_owner")

    def __init__(self, future: asyncio.Future[Any]) -> None:
        self._future = future
        self._cancelled = self._over = False

    def __enter__(self) -> None:
        owner = asyncio.current_task()
        assert owner is not None, "the block must run in a task"
        self._owner = owner
        self._future.add_done_callback(self._ended)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._over = True  # The callback may already be scheduled.
        self._future.remove_done_callback(self._ended)
        if not self._cancelled:
            return
        self._owner.uncancel()
        # If the owner has further cancellation requests, its `CancelledError` propagates.
        if kind is asyncio.CancelledError and not self._owner.cancelling():
            raise self._future.exception() or AssertionError("the future has no exception") from None

    def _ended(self, future: asyncio.Future[Any]) -> None:
        if not self._over and not future.cancelled() and future.exception() is not None:
            self._cancelled = True
            self._owner.cancel()


def stopping() -> bool:
    """Return whether cancellation of the running task was requested. Loops check this before each iteration.

    On Python 3.11, `asyncio.wait_for` and code based on it can lose a cancellation that arrives just as it ends.
    """
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def pause(seconds: float) -> None:
    """Sleep between two iterations of a loop that ends when `stopping`. Do not, if the cancellation was lost."""
    if not stopping():
        await asyncio.sleep(seconds)


async def _cancel_and_wait(task: asyncio.Task[Any]) -> None:
    task.cancel()
    interrupted: tuple[Any, ...] | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            interrupted = error.args  # Raised below, when the task has cleaned up, as nothing else waits for it.
    if not task.cancelled():
        task.exception()  # Mark it as retrieved: the caller raises it, or prefers the exception of its block.
    if interrupted is not None:
        raise asyncio.CancelledError(*interrupted)
