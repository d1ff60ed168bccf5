"""Values that may be used only once: nonces of signatures, ids of server tokens, proofs, links.

They are kept in two stores. Most calls have a nonce or the id of a token, which is valid for minutes. These values
are in Valkey, because a row for each would cost a commit; if Valkey loses its data, a call can be repeated within
these minutes only. Proofs and links give access to an account. They are rows, which are not lost, and are used in
the transaction of the change that they permit.
"""

import math
from datetime import datetime

from storage.postgres.database import Connection
from storage.valkey.client import Valkey, map_errors
from streams.wire.ids import sha256_hex


async def use_briefly(valkey: Valkey, app_id: str, *, what: str, value: str, within_s: float) -> bool:
    """Remember a value in Valkey. Return whether it was not used within the last `within_s`.

    `what` is the kind of value. Raises `StoreError` if Valkey is unavailable.
    """
    with map_errors():
        fresh = await valkey.client.set(
            valkey.key(f"{app_id}:{value}", "once", what), b"", nx=True, ex=max(1, math.ceil(within_s))
        )
    return fresh is not None


_USE = """
insert into used_once (app_id, what, digest, expires_at) values ($1, $2, $3, $4)
on conflict (app_id, what, digest) do update set expires_at = excluded.expires_at where used_once.expires_at <= $5
returning true
"""


async def use_once(conn: Connection, app_id: str, *, what: str, value: str, now: datetime, until: datetime) -> bool:
    """Remember a value in a row until a time. Return whether it was not used before.

    `what` is the kind of value, of which only the digest is stored.
    """
    return await conn.fetchval(_USE, app_id, what, _digest(value), until, now) is not None


_IS_USED = """
select exists (select from used_once where app_id = $1 and what = $2 and digest = $3 and expires_at > $4)
"""


async def is_used(conn: Connection, app_id: str, *, what: str, value: str, now: datetime) -> bool:
    """Return whether a row contains the value."""
    found: bool = await conn.fetchval(_IS_USED, app_id, what, _digest(value), now)
    return found


def _digest(value: str) -> str:
    return sha256_hex(value.encode())
