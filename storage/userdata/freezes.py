"""The freeze of an account, which is deactivated when the freeze ends unless it was recovered (§3.1)."""

from datetime import datetime, timedelta
from typing import ClassVar

from storage.jobs.jobs import Job, cancel_job, due_in, enqueue
from storage.postgres.database import Connection
from storage.userdata.tables import USER_TABLES


class EndFreeze(Job):
    """Deactivate a user whose freeze has ended. Retried for up to a day."""

    task: ClassVar[str] = "end_freeze"
    attempts: ClassVar[int] = 30
    app_id: str
    uid: str


async def find_restriction(conn: Connection, app_id: str, uid: str) -> str | None:
    """Return why an account cannot be frozen at the moment, or `None`. `conn` has locked the user."""
    for table in reversed(USER_TABLES):
        if table.restriction is not None and await conn.fetchval(table.restriction.query, app_id, uid):
            return table.restriction.reason
    return None


_FREEZE = """
update users set status = 'frozen', freeze_time = $3, close_time = $4
where app_id = $1 and uid = $2 and status = 'active'
"""


async def freeze(conn: Connection, app_id: str, uid: str, *, now: datetime, for_s: float) -> None:
    """Freeze an active user, and store the job that ends the freeze. `conn` is in a transaction."""
    await conn.execute(_FREEZE, app_id, uid, now, now + timedelta(seconds=for_s))
    await end_later(conn, app_id, uid, in_s=for_s)


_HAS_IDENTITY = "select exists (select from identities where app_id = $1 and uid = $2)"


async def freeze_if_unreachable(conn: Connection, app_id: str, uid: str, *, now: datetime, for_s: float) -> bool:
    """Freeze an active user who no longer has an identity. Return whether the user was frozen.

    `conn` is in a transaction that has locked the user.

    Nobody can log in as such a user, so the account and its data would stay forever. Until the freeze ends, the
    app's server can recover the account and bind another identity.
    """
    if await conn.fetchval(_HAS_IDENTITY, app_id, uid) or await find_restriction(conn, app_id, uid):
        return False
    await freeze(conn, app_id, uid, now=now, for_s=for_s)
    return True


async def end_later(conn: Connection, app_id: str, uid: str, *, in_s: float) -> None:
    """Store the job that ends the freeze of a user, unless it is already queued."""
    await enqueue(conn, EndFreeze(app_id=app_id, uid=uid), key=key_of(app_id, uid), run_at=due_in(in_s))


_RECOVER = """
update users set status = 'active', freeze_time = null, close_time = null
where app_id = $1 and uid = $2 and status = 'frozen' returning true
"""


async def recover(conn: Connection, app_id: str, uid: str) -> bool:
    """End the freeze of a user. Return whether there was one. `conn` is in a transaction."""
    was_frozen = await conn.fetchval(_RECOVER, app_id, uid) is not None
    await cancel_job(conn, key=key_of(app_id, uid))
    return was_frozen


def key_of(app_id: str, uid: str) -> str:
    """Return the key of the job that ends the freeze of a user."""
    return f"freeze/{app_id}/{uid}"
