"""Subscriptions to channels of Valkey, which are renewed whenever they break.

A subscription that receives nothing looks the same whether nothing is published or all packets are dropped. So it
sends a PING after some seconds of silence. redis-py's `listen` must not be used: if the kernel gives a connection
up (ETIMEDOUT), it takes the error for the end of its own timeout, and reads again without end and without a pause,
which blocks the event loop.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any

import structlog
from redis.asyncio.client import PubSub
from redis.exceptions import TimeoutError as RedisTimeoutError

from storage.valkey.client import Valkey, map_errors
from streams.tasks import stopping
from streams.wire.errors import StoreError

log = structlog.get_logger()

_SUBSCRIBE_AGAIN_S = 0.5
_SILENCE_S = 1.0
"""After this time without a message, a PING is sent."""
_ANSWER_S = 2.0
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
                async with (
                    valkey.subscribed(valkey.channel(topic)) as pubsub,
                    aclosing(_messages(pubsub)) as messages,
                ):
                    if stopping():
                        return
                    async for message in messages:
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


async def _messages(pubsub: PubSub) -> AsyncGenerator[dict[str, Any], None]:
    """Yield messages. Raises one of `VALKEY_ERRORS` if the connection is lost, or a PING is not answered."""
    while True:
        message = await pubsub.get_message(timeout=_SILENCE_S)
        if message is None:
            await pubsub.ping()
            message = await pubsub.get_message(timeout=_ANSWER_S)
        if message is None:
            raise RedisTimeoutError("a subscription did not answer in time")
        if message["type"] != "pong":
            yield message
