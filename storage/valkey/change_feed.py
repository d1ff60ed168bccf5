"""Notices changes made by other processes, of configs for example: by notifications of Valkey and by polling."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import structlog

from storage.valkey.client import Valkey, map_errors
from storage.valkey.subscriptions import subscribe
from streams.tasks import background, stopping
from streams.wire.errors import StoreError

log = structlog.get_logger()

_POLL_S = 0.6
"""PostgreSQL is always polled, because a dead subscription looks like a quiet one. A poll is one indexed query, and
every process knows a change within a second."""


async def announce(valkey: Valkey, *, topic: str) -> None:
    """Notify all processes of a change. If Valkey is unavailable, they notice the change at their next poll."""
    with suppress(StoreError), map_errors():
        await valkey.call(*valkey.message(topic, b""))


@asynccontextmanager
async def following(valkey: Valkey, refresh: Callable[[], Awaitable[None]], *, topic: str) -> AsyncIterator[None]:
    """Call `refresh` after each announced change and at least once per poll interval, during the block."""
    announced = asyncio.Event()
    async with (
        background(_refresh(refresh, announced, topic=topic)),
        background(subscribe(valkey, topic, lambda _: announced.set())),
    ):
        yield


async def _refresh(refresh: Callable[[], Awaitable[None]], announced: asyncio.Event, *, topic: str) -> None:
    reachable = True
    while not stopping():
        with suppress(TimeoutError):
            async with asyncio.timeout(_POLL_S):
                await announced.wait()
        announced.clear()
        try:
            await refresh()
            reachable = True
        except StoreError as error:
            if reachable:
                log.warning("feed.unreachable", topic=topic, error=error.what)
            reachable = False
        except Exception:  # Continue, or a single bug would leave this process with outdated values for good.
            log.exception("feed.refresh_failed", topic=topic)
