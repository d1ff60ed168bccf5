"""Attempts that play a script, and a record of what happened."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

from vendors.calls.attempts import Attempt
from vendors.calls.fallback import first_success

HELD = "held"
"""An item that precedes the output and does not count as output."""

Step = str | Exception | Callable[[], Awaitable[None]]


async def block_forever() -> None:
    await asyncio.Event().wait()


async def pause() -> None:
    await asyncio.sleep(0.02)


class ScriptedAttempts:
    """Creates attempts that play a script, and records what happens in order."""

    def __init__(self) -> None:
        self.history: list[str] = []
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
                    await self._run(step)

        @asynccontextmanager
        async def play() -> AsyncIterator[AsyncIterator[str]]:
            self.history.append(f"{name} opened")
            try:
                await self._run(opening)
                yield items()
            finally:
                await asyncio.sleep(0)
                self.history.append(f"{name} closed")

        return Attempt(name, "llm", "acme", play, lambda item: item != HELD, first_output_s, between_s)

    async def _run(self, step: Step) -> None:
        if isinstance(step, Exception):
            raise step
        if not isinstance(step, str):
            self.begun.set()
            await step()


async def run_attempts(attempts: Sequence[Attempt[str]], into: list[str] | None = None) -> tuple[str, list[str]]:
    seen = [] if into is None else into
    async with first_success(attempts) as (winner, items):
        async for item in items:
            seen.append(item)
    return winner.strategy, seen
