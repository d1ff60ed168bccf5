"""Rows of former proven addresses of users. "This was not me" can restore them for a while (§4.7).

Only an address that a user had for some time, or has signed up with, is kept. Otherwise, somebody who had access to
the account could set an address, and restore it after the user has corrected it.
"""

from datetime import datetime, timedelta

from storage.postgres.database import Connection

RESTORABLE = timedelta(days=7)
"""How long an address can be restored after its replacement or removal, and how long a user must have had it."""

_KEEP = """
insert into earlier_emails (app_id, uid, address, replaced_at, added_at, weakly_proven)
select app_id, uid, social_id, $3, i.create_time, weakly_proven from identities i join users u using (app_id, uid)
where app_id = $1 and uid = $2 and platform = 'email' and trust = 'proven'
and (i.create_time <= $4 or i.create_time = u.create_time)
on conflict (app_id, uid, address) do update set replaced_at = excluded.replaced_at, added_at = excluded.added_at,
    weakly_proven = excluded.weakly_proven
returning true
"""


async def keep_current_address(conn: Connection, app_id: str, uid: str, *, now: datetime) -> bool:
    """Store the current address of a user before its replacement or removal. Return whether it can be restored."""
    return await conn.fetchval(_KEEP, app_id, uid, now, now - RESTORABLE) is not None


_EXISTS = """
select exists (
    select from earlier_emails where app_id = $1 and uid = $2 and address = $3 and replaced_at > $4)
"""


async def is_restorable(conn: Connection, app_id: str, uid: str, *, address: str, now: datetime) -> bool:
    found: bool = await conn.fetchval(_EXISTS, app_id, uid, address, now - RESTORABLE)
    return found


# The user had the address before the later changes, so whoever made those changes regains nothing.
_RETURN = """
with returned as (
    select replaced_at, added_at, weakly_proven from earlier_emails
    where app_id = $1 and uid = $2 and address = $3 and replaced_at > $4
), forgotten as (
    delete from earlier_emails where app_id = $1 and uid = $2 and replaced_at >= (select replaced_at from returned)
)
update identities i set create_time = coalesce(added_at, create_time),
    weakly_proven = i.weakly_proven and returned.weakly_proven from returned
where app_id = $1 and uid = $2 and platform = 'email' and social_id = $3
"""


async def give_back(conn: Connection, app_id: str, uid: str, *, address: str, now: datetime) -> None:
    """If the user had the current address before, treat it as if it had never been replaced.

    The addresses that the user had after it are forgotten.
    """
    await conn.execute(_RETURN, app_id, uid, address, now - RESTORABLE)
