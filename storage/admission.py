"""Places of streams: how many a user has at once, and whose turn it is in a conversation."""

from dataclasses import dataclass

from storage.redis import Valkey, map_errors
from streams.wire.errors import InvalidOperation, RateLimited


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


async def turn_is_taken(valkey: Valkey, app_id: str, user_id: str, conversation_id: str) -> bool:
    """Whether a turn of the conversation is under way."""
    key = Place(app_id, user_id, "", conversation_id).keys(valkey)[1]
    with map_errors():
        return bool(await valkey.client.exists(key))
