"""Logs of events and their readers."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager

from streams.log import EventLog, Ready

MANY = 1 << 30


def open_log(*, keep_bytes: int = MANY, lag_bytes: int = MANY) -> EventLog:
    return EventLog(keep_bytes=keep_bytes, lag_bytes=lag_bytes)


async def turns(count: int = 6) -> None:
    """Let every other task run until it waits."""
    for _ in range(count):
        await asyncio.sleep(0)


@asynccontextmanager
async def reading(
    log: EventLog, after: int = 0, *, idle_s: float = 60
) -> AsyncIterator[AsyncGenerator[tuple[int, bytes]]]:
    async with aclosing(_pairs(log.follow(after, idle_s=idle_s))) as pairs:
        yield pairs


async def _pairs(following: AsyncGenerator[Ready]) -> AsyncGenerator[tuple[int, bytes]]:
    async with aclosing(following) as frames:
        async for ready in frames:
            yield ready.last_id, ready.frames
