"""Rows of users (§2.3), and the order in which transactions lock what belongs to a user.

A transaction that changes an identity of a user, or more than one row that depends on the identities (addresses,
passwords, sessions, codes, tokens), locks the row of the user first. From then on, only this transaction changes
such rows, so it may read and lock them in any order. A transaction that needs several users first locks all of them
with `lock_all`. A login knows only the identity: `storage/accounts/logins.py` locks its user, and then checks that
the identity still belongs to that user.
"""

from collections.abc import Collection
from datetime import datetime
from typing import Literal, NamedTuple

from storage.postgres.database import Connection

Status = Literal["active", "frozen", "deactivated"]


class Ban(NamedTuple):
    """A ban by an operator."""

    time: datetime
    """When it began."""
    until: datetime | None
    """When it ends. `None`: it has no end."""
    reason: str


class User(NamedTuple):
    """A user. Only frozen users have a `freeze_time` and a `close_time`, at which they are deactivated."""

    uid: str
    status: Status
    create_time: datetime
    name: str
    cuid: str
    freeze_time: datetime | None
    close_time: datetime | None
    banned_at: datetime | None = None
    ban_ends_at: datetime | None = None
    ban_reason: str = ""

    def ban(self, *, now: datetime) -> Ban | None:
        """Return the ban of the user, if it has not ended."""
        return holding_ban(self.banned_at, self.ban_ends_at, self.ban_reason, now=now)


COLUMNS = "uid, status, create_time, name, cuid, freeze_time, close_time, banned_at, ban_ends_at, ban_reason"
"""The columns of `User`, in the order of its fields."""


def holding_ban(time: datetime | None, until: datetime | None, reason: str, *, now: datetime) -> Ban | None:
    """Return the ban in the columns of a user, if there is one that has not ended."""
    if time is None or (until is not None and until <= now):
        return None
    return Ban(time, until, reason)


_FIND = f"select {COLUMNS} from users where app_id = $1 and uid = $2 and status <> 'deactivated'"


async def find(conn: Connection, app_id: str, uid: str) -> User | None:
    """Return the user, or `None` if the user does not exist or is deactivated."""
    row = await conn.fetchrow(_FIND, app_id, uid)
    return None if row is None else User(**row)


_FIND_ANY = f"select {COLUMNS} from users where app_id = $1 and uid = $2"
_LOCK_ANY = f"{_FIND_ANY} for no key update"


async def find_any(conn: Connection, app_id: str, uid: str) -> User | None:
    """Return the user, who may be deactivated."""
    row = await conn.fetchrow(_FIND_ANY, app_id, uid)
    return None if row is None else User(**row)


# This lock permits new rows that refer to the user, such as those of conversations.
_LOCK = f"{_FIND} for no key update"


async def lock(conn: Connection, app_id: str, uid: str) -> User | None:
    """Return the user as `find` does. The row does not change until the transaction of `conn` ends."""
    row = await conn.fetchrow(_LOCK, app_id, uid)
    return None if row is None else User(**row)


async def lock_any(conn: Connection, app_id: str, uid: str) -> User | None:
    """Return the user as `find_any` does, and lock the row as `lock` does."""
    row = await conn.fetchrow(_LOCK_ANY, app_id, uid)
    return None if row is None else User(**row)


_LOCK_ALL = """
select from users where app_id = $1 and uid = any($2) order by uid for no key update
"""


async def lock_all(conn: Connection, app_id: str, *, uids: Collection[str]) -> None:
    """Lock the rows of several users, in an order that is the same for all transactions."""
    await conn.fetch(_LOCK_ALL, app_id, uids)


_RECORD_ACTIVITY = """
update users set last_login = $3 where app_id = $1 and uid = $2 and status <> 'deactivated'
"""


async def record_activity(conn: Connection, app_id: str, uid: str, *, now: datetime) -> None:
    """Record that a user was active (§4.8)."""
    await conn.execute(_RECORD_ACTIVITY, app_id, uid, now)
