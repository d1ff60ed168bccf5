"""Rows of proven addresses that users had before. "This was not me" can restore them for a while (§4.7)."""

from datetime import datetime, timedelta

from storage.postgres import Connection

RESTORABLE = timedelta(days=7)
"""How long an address can be restored after it was replaced or removed."""

_KEEP = """
insert into earlier_emails (app_id, uid, address, replaced_at) values ($1, $2, $3, $4)
on conflict (app_id, uid, address) do update set replaced_at = excluded.replaced_at
"""


async def keep(conn: Connection, app_id: str, uid: str, *, address: str, now: datetime) -> None:
    """Remember a proven address of a user that is about to be replaced or removed."""
    await conn.execute(_KEEP, app_id, uid, address, now)


_EXISTS = """
select exists (
    select from earlier_emails where app_id = $1 and uid = $2 and address = $3 and replaced_at > $4)
"""


async def is_restorable(conn: Connection, app_id: str, uid: str, *, address: str, now: datetime) -> bool:
    found: bool = await conn.fetchval(_EXISTS, app_id, uid, address, now - RESTORABLE)
    return found


# The user of a link has the address since before the later changes, so whoever made these gets nothing back.
_FORGET = """
delete from earlier_emails where app_id = $1 and uid = $2 and replaced_at >= (
    select replaced_at from earlier_emails where app_id = $1 and uid = $2 and address = $3)
"""


async def forget_since(conn: Connection, app_id: str, uid: str, *, address: str) -> None:
    """Forget an address that is restored, and those that the user got after it."""
    await conn.execute(_FORGET, app_id, uid, address)


_DELETE = """
delete from earlier_emails where (app_id, uid, address) in (
    select app_id, uid, address from earlier_emails where app_id = $1 and replaced_at <= $2
    limit $3 for update skip locked)
"""


async def delete_expired(conn: Connection, app_id: str, *, before: datetime, limit: int) -> int:
    """Delete at most `limit` addresses that were replaced before the given time. Return their number."""
    status: str = await conn.execute(_DELETE, app_id, before, limit)
    return int(status.rpartition(" ")[2])
