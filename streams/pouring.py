"""Items that are given to a function as they come: then no task is woken for each, and no generator goes on."""

from abc import abstractmethod
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, TypeVar

Item = TypeVar("Item")
Take = Callable[[Item], bool]
"""Takes an item at once; whether it takes more. It may be called outside of any task."""


class Pouring(AsyncIterator[Item]):
    """Can be read one by one too; what was poured is not read again."""

    __slots__ = ()

    @abstractmethod
    async def pour(self, take: Take[Item]) -> bool:
        """Give `take` every item as it comes. Whether it was stopped by `take`; else that was all."""


def poured(items: AsyncIterator[Item], take: Take[Item]) -> Coroutine[Any, Any, bool]:
    """`items.pour`, also where they can only be read one by one."""
    return items.pour(take) if isinstance(items, Pouring) else _one_by_one(items, take)


async def _one_by_one(items: AsyncIterator[Item], take: Take[Item]) -> bool:
    async for item in items:
        if not take(item):
            return True
    return False
