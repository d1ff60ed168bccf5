"""Logins: find the user of an identity and add a session. Each login is one statement, to save round trips."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from storage.accounts.identities import LINKED, Identity, UserAccount, account_of
from storage.accounts.session_cache import SessionCache
from storage.accounts.sessions import Client
from storage.accounts.users import COLUMNS
from storage.postgres.database import Connection

_KEEP_DEAD = timedelta(days=7)
"""How long the row of a session is kept after it has expired or was revoked."""
_BEGIN = """
insert into sessions (
    app_id, digest, uid, platform, social_id, create_time, last_seen, expire_time, client_os, user_agent, address)
"""


class NewSession(NamedTuple):
    """A session that begins with a login."""

    digest: str
    expire_time: datetime
    client: Client = Client()


# The user is locked first, as everywhere (`storage/accounts/users.py`). If the identity was removed from the user
# while `owner` waited, it has no row to lock. `entered` returns the row after all waits, so that a user who was
# frozen or banned meanwhile gets no session.
_MAY_ENTER = "status = 'active' and (banned_at is null or ban_ends_at <= $4)"
_ENTER = f"""
with owner as (
    select uid from users where app_id = $1 and status <> 'deactivated' and uid = (
        select uid from identities where app_id = $1 and platform = $2 and social_id = $3)
    for no key update
), identity as (
    select uid from identities join owner using (uid)
    where app_id = $1 and platform = $2 and social_id = $3 for key share of identities
), entered as (
    update users set
        last_login = case when {_MAY_ENTER} then $4 else last_login end,
        cuid = case when {_MAY_ENTER} then coalesce($5, cuid) else cuid end
    from identity where app_id = $1 and users.uid = identity.uid
    returning app_id, users.{COLUMNS.replace(" ", " users.")}
), begun as (
    {_BEGIN}
    select $1, $6, uid, $2, $3, $4, $4, $7, $8, $9, $10 from entered where {_MAY_ENTER}
)
select {COLUMNS}, {LINKED} from entered users
"""


async def log_in(
    conn: Connection, identity: Identity, *, session: NewSession, now: datetime, cuid: str | None
) -> UserAccount | None:
    """Log in the user of an identity. Return `None` if the identity has no user, or a deactivated one.

    A frozen or banned user gets no session. Locks the row of the user until the transaction, if there is one, ends.
    """
    key = (identity.app_id, identity.platform, identity.social_id)
    return account_of(
        await conn.fetchrow(_ENTER, *key, now, cuid, session.digest, session.expire_time, *session.client)
    )


# A single statement inserts all rows or none. The second of two concurrent first logins waits for the first and
# inserts nothing. Neither does a sign-up with an identity of a user who was deactivated while banned.
_SIGN_UP = f"""
with made as (
    insert into identities (app_id, platform, social_id, uid, create_time, trust)
    select $1, $2, $3, $4, $5::timestamptz, $6
    where not exists (select from banned_identities join users using (app_id, uid)
        where app_id = $1 and digest = any($14) and (ban_ends_at is null or ban_ends_at > $5))
    on conflict do nothing returning uid
), added as (
    insert into users (app_id, uid, create_time, last_login, name, cuid)
    select $1, uid, $5, $5, $7, $8 from made returning uid
), begun as (
    {_BEGIN}
    select $1, $9, uid, $2, $3, $5, $5, $10, $11, $12, $13 from added returning uid
)
select uid from begun
"""


async def sign_up(
    conn: Connection,
    identity: Identity,
    *,
    session: NewSession,
    uid: str,
    now: datetime,
    proven: bool,
    name: str = "",
    cuid: str = "",
    digests: Sequence[bytes] = (),
) -> bool:
    """Insert a user with a first identity, and begin a session. Return false if the identity belongs to a user.

    `digests` are those by which the identity of a banned user would be recognized. Then, too, this returns false.
    """
    user = (identity.app_id, identity.platform, identity.social_id, uid, now, "proven" if proven else "client")
    begun = (session.digest, session.expire_time, *session.client)
    added = await conn.fetchval(_SIGN_UP, *user, name, cuid, *begun, digests)
    return added is not None


_DELETE_DEAD = """
delete from sessions where ctid = any(array(
    select ctid from sessions
    where ctid >= format('(%s,0)', $4::bigint)::tid and ctid < format('(%s,0)', $5::bigint)::tid
        and app_id = $1 and (expire_time < $2 or revoke_time < $2 or last_seen < $3)
    for update skip locked))
"""


async def delete_dead_sessions(
    conn: Connection, app_id: str, *, now: datetime, sliding_s: float, pages: range
) -> int:
    """Delete the sessions in some pages of the table that ended long ago, and return their number.

    A login only deletes those of its own user. There is no index for this, because it would slow down every login.
    """
    ended = now - _KEEP_DEAD
    unseen = ended - timedelta(seconds=sliding_s)
    status: str = await conn.execute(_DELETE_DEAD, app_id, ended, unseen, pages.start, pages.stop)
    return int(status.rpartition(" ")[2])


# The last column lets the commit return before it is on disk. A crash may undo it, and the next login repeats it.
_TRIM = """
with deleted as (
    delete from sessions where app_id = $1 and uid = $2 and (expire_time < $4 or revoke_time < $4)
)
update sessions set revoke_time = $3
where app_id = $1 and uid = $2 and revoke_time is null and expire_time >= $4
and digest not in (
    select digest from sessions where app_id = $1 and uid = $2 and revoke_time is null
    order by create_time desc, digest limit $5
)
returning digest, set_config('synchronous_commit', 'off', true)
"""


async def trim_sessions(
    conn: Connection, app_id: str, uid: str, *, cache: SessionCache, now: datetime, keep_newest: int
) -> int:
    """End all sessions of a user except the `keep_newest` newest. Return their number. Delete long-ended sessions.

    The sessions of a login must be visible to this statement, so it cannot be part of another one.
    """
    assert not conn.is_in_transaction(), "the other writes of a transaction must wait for the disk"
    ended = await conn.fetch(_TRIM, app_id, uid, now, now - _KEEP_DEAD, keep_newest)
    await cache.forget(app_id, [row["digest"] for row in ended])
    return len(ended)
