"""How a process learns that configs changed elsewhere: told through Valkey, and asking PostgreSQL anyway."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import structlog

from storage.redis import Valkey, map_errors
from streams.tasks import stopping
from streams.wire.errors import StoreError

log = structlog.get_logger()

_POLL_S = 0.6
"""A subscription that died looks like a quiet one, so PostgreSQL is asked whether or not it seems alive:
one indexed query, and a change is known everywhere within a second."""
_SUBSCRIBE_AGAIN_S = 1
_CHANNEL = "configs"


async def announce(valkey: Valkey) -> None:
    """Tell all processes that something changed. Where Valkey is away they find out by asking."""
    with suppress(StoreError), map_errors():
        await valkey.client.publish(valkey.channel(_CHANNEL), b"")


async def listen(valkey: Valkey, woken: asyncio.Event) -> None:
    """Set `woken` at each announcement, until it is cancelled."""
    reachable = True
    while not stopping():
        try:
            with map_errors():
                async with valkey.client.pubsub(ignore_subscribe_messages=True) as pubsub:
                    await pubsub.subscribe(valkey.channel(_CHANNEL))
                    reachable = True
                    if stopping():
                        return
                    async for _ in pubsub.listen():
                        woken.set()
        except StoreError as error:
            if reachable:
                log.warning("configs.unsubscribed", what=error.what)
            reachable = False
        await asyncio.sleep(_SUBSCRIBE_AGAIN_S)


async def follow(refresh: Callable[[], Awaitable[None]], woken: asyncio.Event) -> None:
    """Refresh until cancelled: at once when woken, else at every poll."""
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
                log.warning("configs.unreachable", what=error.what)
            reachable = False
        except Exception:  # a bug met once must not leave this process with old configs for ever
            log.exception("configs.refresh_failed")
