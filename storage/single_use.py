"""What may be used once: nonces of signatures, ids of server tokens."""

import math

from storage.redis import Valkey, map_errors


async def first_use(valkey: Valkey, value: str, *, app_id: str, what: str, within_s: float) -> bool:
    """Remember `value` for a while; false when it is remembered already. `StoreError` without Valkey."""
    with map_errors():
        fresh = await valkey.client.set(
            valkey.key(f"{app_id}:{value}", "once", what), b"", nx=True, ex=max(1, math.ceil(within_s))
        )
    return fresh is not None
