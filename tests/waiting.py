"""Waiting for something that can only be polled, and for the work that the event loop has at the moment."""

import asyncio
from collections.abc import Awaitable, Callable
from inspect import isawaitable
from typing import Any


async def until(
    condition: Callable[[], Any | Awaitable[Any]], *, within_s: float = 60, every_s: float = 0.01
) -> None:
    """Wait until `condition` returns a true value. Raises `AssertionError` with the last value after `within_s`."""
    value: Any = None
    try:
        async with asyncio.timeout(within_s):
            while not value:
                value = condition()
                if isawaitable(value):
                    value = await value
                if not value:
                    await asyncio.sleep(every_s)
    except TimeoutError:
        raise AssertionError(f"still {value!r} after {within_s:g} s") from None


async def passes(count: int = 20) -> None:
    """Wait for `count` passes of the event loop. Each runs all ready callbacks and reads all ready sockets.

    Unlike a sleep, this does not depend on the load of the machine. It can show that something does not happen, if
    that would need neither a timer nor another process.
    """
    for _ in range(count):
        await asyncio.sleep(0)
