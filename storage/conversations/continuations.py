"""What another process needs to continue a durable stream whose process dies, and the claim of such a stream."""

from contextlib import suppress
from typing import NamedTuple

from storage.conversations.admission import Slot, StreamLocation
from storage.valkey.client import Valkey, map_errors
from streams.wire.errors import StoreError


class Claim(NamedTuple):
    """A stream of a dead process that now belongs to this one. `saved` is what that process has saved."""

    location: StreamLocation
    saved: bytes
    lifetime_s: float
    """How long Valkey keeps the entry of the stream, at most."""


async def save(valkey: Valkey, slot: Slot, value: bytes, *, lifetime_s: float) -> None:
    """Save what another process needs to continue a stream. The release of its slot deletes it."""
    with map_errors():
        await valkey.call("SET", _keys(valkey, slot)[1], value, "PX", max(1, round(lifetime_s * 1000)))


async def find(valkey: Valkey, slot: Slot) -> bytes | None:
    """Return what was saved for a stream."""
    with map_errors():
        saved: bytes | None = await valkey.call("GET", _keys(valkey, slot)[1])
    return saved


async def remove_of_user(valkey: Valkey, app_id: str, user_id: str) -> None:
    """Delete what was saved for the streams of a user that run, or whose process died while they ran."""
    slot = Slot(app_id, user_id, "")
    with map_errors():
        stream_ids = await valkey.call("ZRANGE", slot.keys(valkey)[0], 0, -1)
        for stream_id in stream_ids:
            await valkey.call("DEL", _keys(valkey, slot._replace(stream_id=stream_id.decode()))[1])


async def claim(
    valkey: Valkey, slot: Slot, *, known: str, dead: bool, process: str
) -> Claim | StreamLocation | None:
    """Claim the stream of `slot` for `process` if it is still that of the process `known`, and that is `dead`.

    Only one claim succeeds. Returns the location of a stream that another process has, or that `known` is about to
    continue, and `None` if it cannot be continued.
    """
    with map_errors():
        answer = await valkey.run("take_over", keys=_keys(valkey, slot), args=[known, int(dead), process])
    if answer[0] == b"none":
        return None
    location = StreamLocation.of(slot.stream_id, answer[1])
    return location if answer[0] == b"moved" else Claim(location, answer[2], answer[3] / 1000)


async def give_back(valkey: Valkey, slot: Slot, *, process: str, dead: str) -> None:
    """Undo a claim of `process`, so that another one can claim the stream of the dead process `dead`.

    If Valkey is unavailable, `process` keeps the claim, and can repeat it.
    """
    with suppress(StoreError), map_errors():
        await valkey.run("take_over", keys=_keys(valkey, slot), args=[process, 1, dead])


def _keys(valkey: Valkey, slot: Slot) -> list[str]:
    """Return the keys of a stream and of its continuation, as `release.lua` names it."""
    stream = slot.keys(valkey)[1]
    return [stream, f"{stream}:continuation"]
