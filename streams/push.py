"""Push-based iteration: a source calls a function with each item as it arrives.

Compared with `async for`, no task is woken and no generator is resumed per item.
"""

from abc import abstractmethod
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, TypeVar

Item = TypeVar("Item")
Sink = Callable[[Item], bool]
"""Consumes an item synchronously and returns whether it accepts more. It may be called outside of any task."""


class PushSource(AsyncIterator[Item]):
    """A source that can push its items or be iterated. Each item is delivered once, in one of the two ways."""

    __slots__ = ()

    @abstractmethod
    async def push_to(self, sink: Sink[Item]) -> bool:
        """Call `sink` with every item as it arrives.

        Return `True` if `sink` refused more items, `False` if the source is exhausted.
        """


def drain_into(items: AsyncIterator[Item], sink: Sink[Item]) -> Coroutine[Any, Any, bool]:
    """Call `sink` with every item of `items`, by iteration if `items` cannot push. Returns as `push_to` does."""
    return items.push_to(sink) if isinstance(items, PushSource) else _iterate_into(items, sink)


async def _iterate_into(items: AsyncIterator[Item], sink: Sink[Item]) -> bool:
    async for item in items:
        if not sink(item):
            return True
    return False
