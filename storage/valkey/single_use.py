"""Values that may be used only once: nonces of signatures and ids of server tokens."""

import math

from storage.valkey.client import Valkey, map_errors


async def first_use(valkey: Valkey, value: str, *, app_id: str, what: str, within_s: float) -> bool:
    """Return whether `value` is used for the first time within the last `within_s`, and remember it.

    `what` is the kind of value. Raises `StoreError` if Valkey is unavailable.
    """
    with map_errors():
        fresh = await valkey.client.set(
            valkey.key(f"{app_id}:{value}", "once", what), b"", nx=True, ex=max(1, math.ceil(within_s))
        )
    return fresh is not None
