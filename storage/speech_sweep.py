"""Removes spoken audio that nothing leads to any more: what goes when, and who sees to it."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

import structlog

from storage.objects import LINK_S, ObjectStore
from storage.redis import Valkey, map_errors
from streams.tasks import background, stopping
from streams.wire.errors import StoreError

log = structlog.get_logger()

_SWEEP_EVERY_S = 600.0
_LEASE_S = 540.0  # shorter than the wait for the next sweep, which would else find it held
_SWEEP_S = 480.0  # shorter than the lease: no two sweep at once
_AT_ONCE = 20
_PUT_OFF_S = 3600.0
GRACE_S = LINK_S + 3600
"""A link opens for a day, and may be made by a stream that found the audio just before it expired."""


async def removed_later(valkey: Valkey, keys: Sequence[str], *, expire_s: float) -> None:
    """Have the objects `keys` go when links to them do no more, that are made until `expire_s` from now."""
    with map_errors():
        await valkey.run("speech_later", keys=[_index(valkey)], args=[round((expire_s + GRACE_S) * 1000), *keys])


async def sweep(valkey: Valkey, objects: ObjectStore) -> int | None:
    """Remove the objects whose time is over, and say how many; none where another sweeps, or just did.

    What cannot be removed is tried again after an hour. `StoreError` while Valkey is away.
    """
    with map_errors():
        taken = await valkey.client.set(valkey.key("speech-sweep", "lease"), "", nx=True, px=round(_LEASE_S * 1000))
    if not taken:
        return None
    count = failed = 0
    with suppress(TimeoutError):
        async with asyncio.timeout(_SWEEP_S):
            while not (failed or stopping()) and (keys := await _due(valkey)):
                for key in keys:
                    if await _removed(valkey, objects, key):
                        count += 1
                    else:
                        failed += 1
    if count or failed:
        log.info("speech.swept", removed=count, failed=failed)
    return count


@asynccontextmanager
async def open_speech_sweep(valkey: Valkey, objects: ObjectStore) -> AsyncIterator[None]:
    """Sweep again and again as long as the block lasts, by turns with the other processes."""
    async with background(_keep_sweeping(valkey, objects)):
        yield


async def _keep_sweeping(valkey: Valkey, objects: ObjectStore) -> None:
    while not stopping():
        try:
            await sweep(valkey, objects)
        except StoreError as error:
            log.warning("speech.not_swept", error=str(error))
        if not stopping():
            await asyncio.sleep(_SWEEP_EVERY_S)


async def _due(valkey: Valkey) -> list[str]:
    """Some whose time is over, put off until they are known to be gone: one that stays holds up no other."""
    with map_errors():
        found: list[bytes] = await valkey.run(
            "speech_due", keys=[_index(valkey)], args=[_AT_ONCE, round(_PUT_OFF_S * 1000)]
        )
    return [key.decode() for key in found]


async def _removed(valkey: Valkey, objects: ObjectStore, key: str) -> bool:
    try:
        await objects.delete([key])
    except (StoreError, ValueError) as error:
        log.warning("speech.not_removed", key=key, error=str(error))
        return False
    with map_errors():
        await valkey.client.zrem(_index(valkey), key)
    return True


def _index(valkey: Valkey) -> str:
    return valkey.key("speech-sweep", "objects")
