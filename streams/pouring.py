"""Items that are given to a function as they come: then no task is woken for each, and no generator goes on."""

from abc import abstractmethod
from collections.abc import AsyncIterator, Callable
from typing import TypeVar

Item = TypeVar("Item")
Take = Callable[[Item], bool]
"""Takes an item at once; whether it takes more. It may be called outside of any task."""


class Pouring(AsyncIterator[Item]):
    """Can be read one by one too; what was poured is not read again."""

    @abstractmethod
    async def pour(self, take: Take[Item]) -> bool:
        """Give `take` every item as it comes. Whether it was stopped by `take`; else that was all."""


async def poured(items: AsyncIterator[Item], take: Take[Item]) -> bool:
    """`items.pour`, also where they can only be read one by one."""
    if isinstance(items, Pouring):
        return await items.pour(take)
    async for item in items:
        if not take(item):
            return True
    return False
