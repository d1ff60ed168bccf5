"""Email addresses of users: the one with which a user logs in, and a pending one (§3.2)."""

from dataclasses import dataclass
from datetime import datetime

from storage.accounts import earlier_emails, identities, users
from storage.accounts.identities import Identity
from storage.postgres.database import Connection, TransactionConflict, on_conflict

PLATFORM = "email"


@dataclass(frozen=True, slots=True)
class Addresses:
    """The addresses of a user. Empty if there is none."""

    current: str = ""
    """The address with which the user logs in."""
    verified: bool = False
    """Whether it is proven, at least weakly."""
    weakly_proven: bool = False
    """Whether it was only proven by opening its link, which programs that scan emails do too."""
    verified_at: datetime | None = None
    pending: str = ""
    """An address that becomes the current one when it is proven."""

    @property
    def strongly_proven(self) -> bool:
        """Whether a code, a reset or the button behind a link has proven the address."""
        return self.verified and not self.weakly_proven


def identity_of(app_id: str, address: str) -> Identity:
    return Identity(app_id, PLATFORM, address)


def not_current(app_id: str, uid: str) -> str:
    """Return a query of a user's pending and former addresses that do not belong to another user.

    `app_id` and `uid` are parameters of the query, such as `$1`.
    """
    return f"""
        select address from (
            select address from pending_emails where app_id = {app_id} and uid = {uid}
            union select address from earlier_emails where app_id = {app_id} and uid = {uid}) as not_current
        where not exists (select from identities i where i.app_id = {app_id} and i.platform = 'email'
            and i.social_id = address and i.uid <> {uid})"""


_FIND = """
select coalesce(i.social_id, '') as current, coalesce(i.trust = 'proven', false) as verified,
       coalesce(i.weakly_proven, false) as weakly_proven,
       case when i.trust = 'proven' then coalesce(i.verified_at, i.create_time) end as verified_at,
       coalesce(p.address, '') as pending
from users u
left join identities i on i.app_id = u.app_id and i.uid = u.uid and i.platform = 'email'
left join pending_emails p on p.app_id = u.app_id and p.uid = u.uid
where u.app_id = $1 and u.uid = $2 and u.status <> 'deactivated'
"""


async def find(conn: Connection, app_id: str, uid: str) -> Addresses:
    row = await conn.fetchrow(_FIND, app_id, uid)
    return Addresses() if row is None else Addresses(**row)


async def lock(conn: Connection, app_id: str, uid: str) -> Addresses:
    """Return the addresses of a user. They do not change until the transaction of `conn` ends."""
    await users.lock(conn, app_id, uid)
    return await find(conn, app_id, uid)


_SET_PENDING = """
insert into pending_emails (app_id, uid, address, created_at) values ($1, $2, $3, $4)
on conflict (app_id, uid) do update set address = excluded.address, created_at = excluded.created_at
"""


async def set_pending(conn: Connection, app_id: str, uid: str, *, address: str, now: datetime) -> None:
    """Store a pending address to which a link is being sent. It replaces an earlier one."""
    await conn.execute(_SET_PENDING, app_id, uid, address, now)


async def drop_pending(conn: Connection, app_id: str, uid: str) -> bool:
    """Delete the pending address. Return whether there was one."""
    found = await conn.fetchval(
        "delete from pending_emails where app_id = $1 and uid = $2 returning true", app_id, uid
    )
    return found is not None


_VERIFY = """
update identities set trust = 'proven', weakly_proven = $4,
    verified_at = case when trust = 'proven' then verified_at else $3 end
where app_id = $1 and platform = 'email' and social_id = $2 and (trust <> 'proven' or weakly_proven)
"""


async def mark_verified(conn: Connection, app_id: str, *, address: str, now: datetime, weak: bool = False) -> None:
    """Record that the address of a user is proven. A weak proof does not replace a strong one."""
    await conn.execute(_VERIFY, app_id, address, now, weak)


_CLAIMANT = """
select uid from identities where app_id = $1 and platform = 'email' and social_id = $2
and (trust <> 'proven' or weakly_proven)
"""


async def claimant(conn: Connection, app_id: str, *, address: str) -> str | None:
    """Return the user of an address of which there is no strong proof, so that it may be somebody else's."""
    uid: str | None = await conn.fetchval(_CLAIMANT, app_id, address)
    return uid


class AddressTaken(Exception):
    """The address belongs to another user, or the user cannot have one."""


async def lock_with_claimant(conn: Connection, app_id: str, uid: str, *, address: str) -> None:
    """Lock a user, and the claimant of an address, if there is one.

    Raises `TransactionConflict` if somebody signs up with it concurrently.
    """
    found = await claimant(conn, app_id, address=address)
    await users.lock_all(conn, app_id, uids={uid} if found is None else {uid, found})
    if await claimant(conn, app_id, address=address) not in {found, None}:
        raise TransactionConflict


# The identity of a proven address replaces the former one of its user.
_RENAME = """
update identities set social_id = $4, trust = 'proven', weakly_proven = $6, verified_at = $5, create_time = $5
where app_id = $1 and uid = $2 and platform = 'email' and social_id = $3
"""
_RENAME_SESSIONS = """
update sessions set social_id = $4 where app_id = $1 and uid = $2 and platform = 'email' and social_id = $3
"""


_WEAKEN = """
update identities set weakly_proven = true where app_id = $1 and platform = 'email' and social_id = $2
"""


async def set_current(
    conn: Connection, app_id: str, uid: str, *, address: str, old: str, now: datetime, weak: bool = False
) -> bool:
    """Make a proven address the user's current one. Raises `AddressTaken`, which ends the transaction.

    `old` is the address that it replaces, or empty. Sessions of the old address continue as sessions of the new
    one. `weak` says how the address was proven. If the user had it before, a strong proof of that time counts too.
    Returns whether `old` can be restored. It cannot if the user had the new address before.
    """
    returns = await earlier_emails.is_restorable(conn, app_id, uid, address=address, now=now)
    kept = not returns and await earlier_emails.keep_current_address(conn, app_id, uid, now=now)
    if old:
        with on_conflict("identities_pkey", AddressTaken):
            await conn.execute(_RENAME, app_id, uid, old, address, now, weak)
        await conn.execute(_RENAME_SESSIONS, app_id, uid, old, address)
    elif await identities.link(conn, identity_of(app_id, address), uid=uid, now=now, proven=True) != "linked":
        raise AddressTaken
    elif weak:
        await conn.execute(_WEAKEN, app_id, address)
    if returns:
        await earlier_emails.give_back(conn, app_id, uid, address=address, now=now)
    return kept


_DROP = """
with dropped_password as (delete from passwords where app_id = $1 and uid = $2)
delete from identities where app_id = $1 and uid = $2 and platform <> 'email' returning platform
"""


async def drop_unproven(conn: Connection, app_id: str, uid: str) -> list[str]:
    """Delete the password and the other identities of an account whose address had no strong proof before.

    Return the platforms of the deleted identities.
    """
    return [row["platform"] for row in await conn.fetch(_DROP, app_id, uid)]
