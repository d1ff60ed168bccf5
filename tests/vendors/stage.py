"""Attempts that play a script, and what was heard of them."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

from vendors.fallback import Attempt, first_success

HELD = "held"
"""An item that only announces output."""

Step = str | Exception | Callable[[], Awaitable[None]]


async def for_ever() -> None:
    await asyncio.Event().wait()


async def a_moment() -> None:
    await asyncio.sleep(0.02)


class Stage:
    """Makes attempts that play a script, and keeps what happened in order."""

    def __init__(self) -> None:
        self.story: list[str] = []
        self.begun = asyncio.Event()

    def attempt(
        self,
        name: str,
        *steps: Step,
        opening: Step = "",
        first_output_s: float = 5,
        between_s: float = 5,
    ) -> Attempt[str]:
        async def items() -> AsyncIterator[str]:
            for step in steps:
                if isinstance(step, str):
                    yield step
                else:
                    await self._take(step)

        @asynccontextmanager
        async def play() -> AsyncIterator[AsyncIterator[str]]:
            self.story.append(f"{name} opened")
            try:
                await self._take(opening)
                yield items()
            finally:
                await asyncio.sleep(0)
                self.story.append(f"{name} closed")

        return Attempt(name, "llm", "acme", play, lambda item: item != HELD, first_output_s, between_s)

    async def _take(self, step: Step) -> None:
        if isinstance(step, Exception):
            raise step
        if not isinstance(step, str):
            self.begun.set()
            await step()


async def heard(attempts: Sequence[Attempt[str]], into: list[str] | None = None) -> tuple[str, list[str]]:
    seen = [] if into is None else into
    async with first_success(attempts) as (winner, items):
        async for item in items:
            seen.append(item)
    return winner.strategy, seen
