"""Removes audio of cached speech once no link to it can be valid any more."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

import structlog

from storage.objects import LINK_S, ObjectStore
from storage.valkey.client import Valkey, map_errors
from streams.tasks import background, pause, stopping
from streams.wire.errors import StoreError

log = structlog.get_logger()

_SWEEP_EVERY_S = 600.0
_LEASE_S = 540.0  # Shorter than the time between sweeps, so that it has expired when the next one begins.
_SWEEP_S = 480.0  # Shorter than the lease, so that two processes never sweep at the same time.
_BATCH_SIZE = 20
_POSTPONE_S = 3600.0
GRACE_S = LINK_S + 3600
"""How long audio is kept after its cache entry has expired. A link is valid for a day, and a stream that has found
the entry just before it expired may still create one."""


async def schedule_removal(valkey: Valkey, keys: Sequence[str], *, expire_s: float) -> None:
    """Have the objects `keys` removed once links to them that are created within `expire_s` have expired."""
    with map_errors():
        await valkey.run("speech_later", keys=[_index(valkey)], args=[round((expire_s + GRACE_S) * 1000), *keys])


async def sweep(valkey: Valkey, objects: ObjectStore) -> int | None:
    """Remove the objects that are due and return their number, or `None` if another process holds the lease.

    Objects that cannot be removed are tried again after an hour. Raises `StoreError` if Valkey is unavailable.
    """
    with map_errors():
        acquired = await valkey.client.set(
            valkey.key("speech-sweep", "lease"), "", nx=True, px=round(_LEASE_S * 1000)
        )
    if not acquired:
        return None
    count = failed = 0
    with suppress(TimeoutError):
        async with asyncio.timeout(_SWEEP_S):
            while not (failed or stopping()) and (keys := await _due(valkey)):
                for key in keys:
                    if await _remove(valkey, objects, key):
                        count += 1
                    else:
                        failed += 1
    if count or failed:
        log.info("speech_sweep.finished", removed=count, failed=failed)
    return count


@asynccontextmanager
async def open_speech_sweep(valkey: Valkey, objects: ObjectStore) -> AsyncIterator[None]:
    """Sweep periodically during the block. A lease ensures that only one process sweeps at a time."""
    async with background(_keep_sweeping(valkey, objects)):
        yield


async def _keep_sweeping(valkey: Valkey, objects: ObjectStore) -> None:
    while not stopping():
        try:
            await sweep(valkey, objects)
        except StoreError as error:
            log.warning("speech_sweep.failed", error=str(error))
        await pause(_SWEEP_EVERY_S)


async def _due(valkey: Valkey) -> list[str]:
    """Return some objects that are due. They are postponed, so that a failing removal does not block the others."""
    with map_errors():
        due: list[bytes] = await valkey.run(
            "speech_due", keys=[_index(valkey)], args=[_BATCH_SIZE, round(_POSTPONE_S * 1000)]
        )
    return [key.decode() for key in due]


async def _remove(valkey: Valkey, objects: ObjectStore, key: str) -> bool:
    try:
        await objects.delete([key])
    except (StoreError, ValueError) as error:
        log.warning("speech_sweep.removal_failed", key=key, error=str(error))
        return False
    with map_errors():
        await valkey.client.zrem(_index(valkey), key)
    return True


def _index(valkey: Valkey) -> str:
    return valkey.key("speech-sweep", "objects")
