"""Notices changes made by other processes, of configs for example: by notifications of Valkey and by polling."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import structlog

from storage.redis import Valkey, map_errors
from streams.tasks import stopping
from streams.wire.errors import StoreError

log = structlog.get_logger()

_POLL_S = 0.6
"""PostgreSQL is always polled, because a dead subscription looks like a quiet one. A poll is one indexed query, and
every process knows a change within a second."""
_SUBSCRIBE_AGAIN_S = 1
_CONFIGS = "configs"


async def announce(valkey: Valkey, *, topic: str = _CONFIGS) -> None:
    """Notify all processes of a change. If Valkey is unavailable, they notice the change at their next poll."""
    with suppress(StoreError), map_errors():
        await valkey.client.publish(valkey.channel(topic), b"")


async def listen(valkey: Valkey, woken: asyncio.Event, *, topic: str = _CONFIGS) -> None:
    """Set `woken` at each notification, until cancelled."""
    reachable = True
    while not stopping():
        try:
            with map_errors():
                async with valkey.client.pubsub(ignore_subscribe_messages=True) as pubsub:
                    await pubsub.subscribe(valkey.channel(topic))
                    reachable = True
                    if stopping():
                        return
                    async for _ in pubsub.listen():
                        woken.set()
        except StoreError as error:
            if reachable:
                log.warning("feed.unsubscribed", topic=topic, error=error.what)
            reachable = False
        await asyncio.sleep(_SUBSCRIBE_AGAIN_S)


async def follow(refresh: Callable[[], Awaitable[None]], woken: asyncio.Event, *, topic: str = _CONFIGS) -> None:
    """Call `refresh` whenever `woken` is set and at least once per poll interval, until cancelled."""
    reachable = True
    while not stopping():
        with suppress(TimeoutError):
            async with asyncio.timeout(_POLL_S):
                await woken.wait()
        woken.clear()
        try:
            await refresh()
            reachable = True
        except StoreError as error:
            if reachable:
                log.warning("feed.unreachable", topic=topic, error=error.what)
            reachable = False
        except Exception:  # Continue, or a single bug would leave this process with outdated values for good.
            log.exception("feed.refresh_failed", topic=topic)
