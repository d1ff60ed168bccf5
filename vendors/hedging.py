"""Two attempts side by side: the first with output wins, the other is closed."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, aclosing
from typing import Any, Generic, Protocol, Self, TypeVar

from streams.tasks import background

Clock = Callable[[], Coroutine[Any, Any, float]]

_AHEAD = 16
"""Items that a winner may read before they are taken."""


class Racer(Protocol):
    """An attempt, for a block; once it has output, all its items from the first."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *fault: Any) -> None: ...  # noqa: PYI036 - what it was left by

    def __aiter__(self) -> AsyncIterator[Any]: ...

    async def has_output(self) -> bool: ...

    def lost(self) -> None:
        """Another was faster."""


R = TypeVar("R", bound=Racer)


async def race(
    attempt: R,
    start_second: Callable[[], R | None],
    stack: AsyncExitStack,
    *,
    late_after_s: float,
    clock: Clock | None,
) -> tuple[R, AsyncIterator[Any]] | None:
    """Run `attempt`, and beside it `start_second`, if there is any, when it is late: who won, and its items.

    Both are closed with `stack`, who lost before. `clock` returns where the time runs from. If `attempt` fails in
    time, no second one is started.
    """
    first = _Runner(attempt)
    await first.begin(stack)
    if clock is not None:
        async with background(clock()) as input_end:
            either: list[asyncio.Future[Any]] = [first.output, input_end]
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
    done, _ = await asyncio.wait([first.output], timeout=late_after_s)
    beside = None if done else start_second()
    if beside is None:
        return await first.read(stack) if await first.output else None
    second = _Runner(beside)
    await second.begin(stack)
    running = {runner.output: runner for runner in (first, second)}
    while running:
        done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
        for output in sorted(done, key=lambda output: running[output] is second):
            runner = running.pop(output)
            if output.result():
                for loser in running.values():
                    await loser.lose()
                return await runner.read(stack)
    return None


class _Runner(Generic[R]):
    """An attempt in a task of its own: opened, read and closed there."""

    def __init__(self, attempt: R) -> None:
        self.attempt = attempt
        self.output: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._items: asyncio.Queue[Any] = asyncio.Queue(_AHEAD)
        """Items; a fault or nothing in the end."""
        self._stack = AsyncExitStack()

    async def begin(self, stack: AsyncExitStack) -> None:
        await stack.enter_async_context(self._stack)
        await self._stack.enter_async_context(background(self._run()))

    async def lose(self) -> None:
        self.attempt.lost()
        await self._stack.aclose()

    async def read(self, stack: AsyncExitStack) -> tuple[R, AsyncIterator[Any]]:
        return self.attempt, await stack.enter_async_context(aclosing(self._read()))

    async def _read(self) -> AsyncGenerator[Any]:
        while (item := await self._items.get()) is not None:
            if isinstance(item, Exception):
                raise item
            yield item

    async def _run(self) -> None:
        async with self.attempt as attempt:
            try:
                has_output = await attempt.has_output()
            except BaseException as error:
                if not self.output.done() and isinstance(error, Exception):
                    self.output.set_exception(error)
                raise
            self.output.set_result(has_output)
            if not has_output:
                return
            try:
                async for item in attempt:
                    await self._items.put(item)
            except Exception as error:  # noqa: BLE001 - raised by who reads
                await self._items.put(error)
            else:
                await self._items.put(None)
