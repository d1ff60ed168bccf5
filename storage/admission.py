"""Places of streams: how many a user has at once, and whose turn it is in a conversation."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import structlog

from storage.redis import Valkey, map_errors
from streams.tasks import background, stopping
from streams.wire.errors import InvalidOperation, RateLimited, StoreError

log = structlog.get_logger()

_TRY_AGAIN_S = 0.5


@dataclass(frozen=True, slots=True)
class Place:
    """What a stream holds while it runs; `conversation_id` where it is a turn."""

    app_id: str
    user_id: str
    stream_id: str
    conversation_id: str | None = None

    def keys(self, valkey: Valkey) -> list[str]:
        tag = f"{self.app_id}:{self.user_id}"
        keys = [valkey.key(tag, "streams")]
        if self.conversation_id is not None:
            keys.append(valkey.key(tag, "turn", self.conversation_id))
        return keys


async def admit(valkey: Valkey, place: Place, *, limit: int, lifetime_s: float) -> None:
    """Take `place` in one script: `InvalidOperation` for a turn under way, `RateLimited` over `limit`."""
    with map_errors():
        answer = await valkey.script("admit")(
            keys=place.keys(valkey), args=[place.stream_id, limit, round(lifetime_s * 1000)]
        )
    if answer == b"turn":
        raise InvalidOperation("another turn of this conversation is running")
    if answer == b"limit":
        raise RateLimited(f"at most {limit} streams at once", retry_after_s=1)


async def release(valkey: Valkey, place: Place) -> None:
    """Give `place` back; without effect when it is void already."""
    with map_errors():
        await valkey.script("release")(keys=place.keys(valkey), args=[place.stream_id])


class Places:
    """Takes places and gives them back, also those that Valkey could not be told of at once."""

    def __init__(self, valkey: Valkey) -> None:
        self._valkey = valkey
        self._owed: dict[str, Place] = {}
        self._more = asyncio.Event()

    async def take(self, place: Place, *, limit: int, lifetime_s: float) -> bool:
        """Whether `place` is held for sure; not while Valkey is away. It is to be given back in either case."""
        try:
            await admit(self._valkey, place, limit=limit, lifetime_s=lifetime_s)
        except StoreError as error:
            log.warning("place.unsure", stream_id=place.stream_id, error=str(error))
            return False
        return True

    async def give_back(self, place: Place) -> None:
        try:
            await release(self._valkey, place)
        except StoreError:
            self._owed[place.stream_id] = place
            self._more.set()

    async def keep_giving_back(self) -> None:
        while not stopping():
            await self._more.wait()
            try:
                while self._owed:
                    stream_id, place = next(iter(self._owed.items()))
                    await release(self._valkey, place)
                    self._owed.pop(stream_id, None)
                self._more.clear()
            except StoreError:
                await asyncio.sleep(_TRY_AGAIN_S)


@asynccontextmanager
async def open_places(valkey: Valkey) -> AsyncIterator[Places]:
    places = Places(valkey)
    async with background(places.keep_giving_back()):
        yield places


async def turn_is_taken(valkey: Valkey, app_id: str, user_id: str, conversation_id: str) -> bool:
    """Whether a turn of the conversation is under way."""
    key = Place(app_id, user_id, "", conversation_id).keys(valkey)[1]
    with map_errors():
        return bool(await valkey.client.exists(key))
