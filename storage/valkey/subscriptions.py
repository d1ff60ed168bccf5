"""Subscriptions to channels of Valkey, which are renewed whenever they break."""

import asyncio
from collections.abc import Callable

import structlog

from storage.valkey.client import Valkey, map_errors
from streams.tasks import stopping
from streams.wire.errors import StoreError

log = structlog.get_logger()

_SUBSCRIBE_AGAIN_S = 0.5


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
                async with valkey.client.pubsub(ignore_subscribe_messages=True) as pubsub:
                    await pubsub.subscribe(valkey.channel(topic))
                    reachable = True
                    on_subscribed()
                    if stopping():
                        return
                    async for message in pubsub.listen():
                        on_message(message["data"])
        except StoreError as error:
            if reachable:
                log.warning("subscription.lost", topic=topic, error=error.what)
            reachable = False
        finally:
            on_unsubscribed()
        await asyncio.sleep(_SUBSCRIBE_AGAIN_S)
