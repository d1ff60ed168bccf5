"""Subscriptions to channels of Valkey, which are renewed whenever they break."""

import asyncio
from collections.abc import Callable

import structlog

from storage.valkey.client import Valkey, map_errors
from streams.tasks import stopping
from streams.wire.errors import StoreError

log = structlog.get_logger()

_SUBSCRIBE_AGAIN_S = 0.5
_BEGINS = {"subscribe", "ssubscribe"}
_MOVED = "sunsubscribe"
"""A node of a cluster sends this without being asked when the slot of the channel moves to another node."""


async def subscribe(
    valkey: Valkey,
    topic: str,
    on_message: Callable[[bytes], None],
    *,
    on_subscribed: Callable[[], None] = lambda: None,
    on_unsubscribed: Callable[[], None] = lambda: None,
) -> None:
    """Call `on_message` with each message of the channel, until cancelled.

    Messages that are published between `on_unsubscribed` and `on_subscribed` are lost: meanwhile Valkey is
    unavailable, or the connection is broken.
    """
    reachable = True
    while not stopping():
        try:
            with map_errors():
                async with valkey.subscribed(valkey.channel(topic)) as pubsub:
                    if stopping():
                        return
                    async for message in pubsub.listen():
                        if message["type"] in _BEGINS:
                            reachable = True
                            on_subscribed()
                        elif message["type"] == _MOVED:
                            break
                        else:
                            on_message(message["data"])
        except StoreError as error:
            if reachable:
                log.warning("subscription.lost", topic=topic, error=error.what)
            reachable = False
        finally:
            on_unsubscribed()
        await asyncio.sleep(_SUBSCRIBE_AGAIN_S)
