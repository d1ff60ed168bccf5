"""Rows of passwords: one hash per user, which is valid for all identities of the user."""

from dataclasses import dataclass
from datetime import datetime

from storage.accounts.identities import Identity
from storage.postgres.database import Connection


@dataclass(frozen=True, slots=True)
class PasswordOwner:
    """A user and the hash of the user's password. The hash is `None` if the user has no password."""

    uid: str
    password_hash: str | None
    changed_at: datetime | None


_FIND = "select hash from passwords where app_id = $1 and uid = $2"


async def find(conn: Connection, app_id: str, uid: str) -> str | None:
    """Return the hash of the user's password, or `None` if the user has none."""
    found: str | None = await conn.fetchval(_FIND, app_id, uid)
    return found


_OWNER = """
select uid, hash as password_hash, changed_at from identities
join users using (app_id, uid) left join passwords using (app_id, uid)
where app_id = $1 and platform = $2 and social_id = $3 and status <> 'deactivated'
"""


async def owner(conn: Connection, identity: Identity) -> PasswordOwner | None:
    """Return the user of an identity, or `None` if there is no such user."""
    row = await conn.fetchrow(_OWNER, identity.app_id, identity.platform, identity.social_id)
    return None if row is None else PasswordOwner(**row)


_PUT = """
insert into passwords (app_id, uid, hash, changed_at) values ($1, $2, $3, $4)
on conflict (app_id, uid) do update set hash = excluded.hash, changed_at = excluded.changed_at
"""


async def put(conn: Connection, app_id: str, uid: str, *, new_hash: str, now: datetime) -> None:
    """Set the password of a user. It replaces an earlier one."""
    await conn.execute(_PUT, app_id, uid, new_hash, now)


_CHANGE = """
update passwords set hash = $4, changed_at = $5 where app_id = $1 and uid = $2 and hash = $3 returning true
"""


async def change(conn: Connection, app_id: str, uid: str, *, old_hash: str, new_hash: str, now: datetime) -> bool:
    """Replace the password if its hash is still `old_hash`. Return whether it was replaced."""
    return await conn.fetchval(_CHANGE, app_id, uid, old_hash, new_hash, now) is not None


_LOCK = "select true from passwords where app_id = $1 and uid = $2 and hash = $3 for update"


async def lock(conn: Connection, app_id: str, uid: str, *, known_hash: str) -> bool:
    """Return whether the hash of the user's password is still `known_hash`, and lock it until the transaction ends.

    A login calls this in its transaction, so that no session begins with a password that has just been changed.
    """
    return await conn.fetchval(_LOCK, app_id, uid, known_hash) is not None


_REHASH = "update passwords set hash = $4 where app_id = $1 and uid = $2 and hash = $3"


async def rehash(conn: Connection, app_id: str, uid: str, *, old_hash: str, new_hash: str) -> None:
    """Replace the hash of a password with a hash of other parameters."""
    await conn.execute(_REHASH, app_id, uid, old_hash, new_hash)


_DELETE = "delete from passwords where app_id = $1 and uid = $2 returning true"


async def delete(conn: Connection, app_id: str, uid: str) -> bool:
    """Delete the password of a user. Return whether there was one."""
    return await conn.fetchval(_DELETE, app_id, uid) is not None
