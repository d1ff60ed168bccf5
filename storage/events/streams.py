"""The Redis Streams to which events are reported."""

import asyncio
from collections.abc import Mapping, Sequence

from storage.valkey.client import Valkey, map_errors


async def append(
    valkey: Valkey, app_id: str, *, stream: str, entries: Sequence[Mapping[str, str | bytes]], max_len: int
) -> None:
    """Add entries to a stream of an app in their order, and delete its oldest beyond about `max_len`.

    Raises `StoreError`. Some of the entries may have been added then.
    """
    key = valkey.key(f"events:{app_id}", stream)
    with map_errors():
        words = ([word for field in entry.items() for word in field] for entry in entries)
        await asyncio.gather(*(valkey.call("XADD", key, "MAXLEN", "~", max_len, "*", *entry) for entry in words))
