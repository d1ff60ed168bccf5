"""Rows of values that may be used only once, and must not be used again after Valkey has lost its data."""

from datetime import datetime

from storage.postgres.database import Connection

_USE = """
insert into used_once (app_id, what, digest, expires_at) values ($1, $2, $3, $4)
on conflict (app_id, what, digest) do update set expires_at = excluded.expires_at where used_once.expires_at <= $5
returning true
"""


async def use(conn: Connection, app_id: str, *, what: str, digest: str, now: datetime, until: datetime) -> bool:
    """Remember a value until a time. Return whether it was not remembered before.

    `what` is the kind of value, and `digest` its SHA-256.
    """
    return await conn.fetchval(_USE, app_id, what, digest, until, now) is not None


_IS_USED = """
select exists (select from used_once where app_id = $1 and what = $2 and digest = $3 and expires_at > $4)
"""


async def is_used(conn: Connection, app_id: str, *, what: str, digest: str, now: datetime) -> bool:
    found: bool = await conn.fetchval(_IS_USED, app_id, what, digest, now)
    return found
