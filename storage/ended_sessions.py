"""Announcements of ended sessions, which every process receives through Valkey."""

import asyncio
from collections.abc import Callable, Collection
from typing import NamedTuple

import structlog

from storage.redis import Valkey, map_errors
from streams.tasks import stopping
from streams.wire.codec import dumps, loads
from streams.wire.errors import StoreError

log = structlog.get_logger()

_CHANNEL = "sessions"
_SUBSCRIBE_AGAIN_S = 1


class SessionKey(NamedTuple):
    """The key of a row of `sessions`."""

    app_id: str
    digest: str


async def announce(valkey: Valkey, app_id: str, digests: Collection[str]) -> None:
    """Announce to all processes that sessions end. Raises `StoreError` if Valkey is unavailable."""
    with map_errors():
        await valkey.client.publish(valkey.channel(_CHANNEL), dumps([app_id, *digests]))


async def listen(valkey: Valkey, on_ended: Callable[[Collection[SessionKey] | None], None]) -> None:
    """Call `on_ended` with the sessions of each announcement, until cancelled.

    It is called with `None` after each subscription, because announcements before it are lost.
    """
    reachable = True
    while not stopping():
        try:
            with map_errors():
                async with valkey.client.pubsub(ignore_subscribe_messages=True) as pubsub:
                    await pubsub.subscribe(valkey.channel(_CHANNEL))
                    reachable = True
                    on_ended(None)
                    if stopping():
                        return
                    async for message in pubsub.listen():
                        app_id, *digests = loads(message["data"])
                        on_ended([SessionKey(app_id, digest) for digest in digests])
        except StoreError as error:
            if reachable:
                log.warning("sessions.unsubscribed", error=error.what)
            reachable = False
        await asyncio.sleep(_SUBSCRIBE_AGAIN_S)
