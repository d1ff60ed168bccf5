"""Simulates passing time for the sweep of cached speech."""

from storage.valkey.client import Valkey

DAY_S = 24 * 60 * 60


HOUR_S = 60 * 60


async def pass_s(valkey: Valkey, seconds: float) -> None:
    """Bring the removal of cached speech nearer by `seconds`, and end the lease of the last sweep."""
    index = valkey.key("speech-sweep", "objects")
    for key, _ in await valkey.client.zrange(index, 0, -1, withscores=True):
        await valkey.client.zincrby(index, -seconds * 1000, key)
    await valkey.client.delete(valkey.key("speech-sweep", "lease"))
