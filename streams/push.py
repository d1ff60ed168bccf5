"""Items that are given to a function as they come: then no task is woken for each, and no generator goes on."""

from abc import abstractmethod
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, TypeVar

Item = TypeVar("Item")
Sink = Callable[[Item], bool]
"""Takes an item at once; whether it takes more. It may be called outside of any task."""


class PushSource(AsyncIterator[Item]):
    """Can be read one by one too; what was drain_into is not read again."""

    __slots__ = ()

    @abstractmethod
    async def push_to(self, sink: Sink[Item]) -> bool:
        """Give `sink` every item as it comes. Whether it was stopped by `sink`; else that was all."""


def drain_into(items: AsyncIterator[Item], sink: Sink[Item]) -> Coroutine[Any, Any, bool]:
    """`items.pour`, also where they can only be read one by one."""
    return items.push_to(sink) if isinstance(items, PushSource) else _one_by_one(items, sink)


async def _one_by_one(items: AsyncIterator[Item], sink: Sink[Item]) -> bool:
    async for item in items:
        if not sink(item):
            return True
    return False
