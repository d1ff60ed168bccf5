"""Hedging: a second attempt runs in parallel with a late one. The first with output wins; the other is closed."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, aclosing
from typing import Any, Generic, Protocol, Self, TypeVar

from streams.tasks import background

Clock = Callable[[], Coroutine[Any, Any, float]]

_READ_AHEAD_ITEMS = 16
"""The number of items that an attempt may read ahead of its consumer."""


class HedgedAttempt(Protocol):
    """An attempt as a context manager. Once `has_output` returns true, iterating yields all items."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *fault: Any) -> None: ...  # noqa: PYI036 - the exception triple, passed through

    def __aiter__(self) -> AsyncIterator[Any]: ...

    async def has_output(self) -> bool: ...

    def lost(self) -> None:
        """Called when the other attempt has won."""


R = TypeVar("R", bound=HedgedAttempt)


async def race(
    attempt: R,
    start_second: Callable[[], R | None],
    stack: AsyncExitStack,
    *,
    late_after_s: float,
    clock: Clock | None,
) -> tuple[R, AsyncIterator[Any]] | None:
    """Run `attempt`, and the attempt of `start_second` if the first is late. Return the winner and its items.

    The first attempt is late `late_after_s` seconds after it began, or after `clock` has returned. If it fails
    before that, no second attempt is started. Return `None` if no attempt has output. The loser is closed before
    this function returns, the winner with `stack`.
    """
    first = _Runner(attempt)
    await first.begin(stack)
    if clock is not None:
        async with background(clock()) as input_end:
            either: list[asyncio.Future[Any]] = [first.output, input_end]
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
    done, _ = await asyncio.wait([first.output], timeout=late_after_s)
    other = None if done else start_second()
    if other is None:
        return await first.read(stack) if await first.output else None
    second = _Runner(other)
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
    """Opens, reads and closes an attempt in its own task."""

    def __init__(self, attempt: R) -> None:
        self.attempt = attempt
        self.output: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._items: asyncio.Queue[Any] = asyncio.Queue(_READ_AHEAD_ITEMS)
        """The items, followed by an exception or by `None`."""
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
            except Exception as error:  # noqa: BLE001 - raised again in `_read`
                await self._items.put(error)
            else:
                await self._items.put(None)
