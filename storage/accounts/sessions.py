"""Sessions of signed-in users: their rows in PostgreSQL, which are read through `SessionCache`."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from storage.accounts.ended_sessions import NOTIFY, SessionKey
from storage.accounts.identities import Identity
from storage.accounts.session_cache import Session, SessionCache
from storage.postgres.database import Connection, Database
from streams.wire.errors import DatabaseUnavailable, ItemNotFound, StoreError, listed
from streams.wire.owned import Owned

COPY_S = 30.0
"""Maximum age of a cached session."""
_TOUCH_S = 3600.0
_ID_CHARACTERS = 32
"""A session is named by the beginning of its digest, from which its token cannot be derived."""


class SessionNotFound(ItemNotFound):
    """No session of the user has this `session_id`."""

    def __init__(self, session_id: str) -> None:
        super().__init__(f"session {listed([session_id])} does not exist")


SESSION = Owned(SessionNotFound)


class Client(NamedTuple):
    """The origin of a session, by which its user can recognize it. Empty: unknown."""

    os: str = ""
    """The operating system, as the client names it."""
    user_agent: str = ""
    address: str = ""


_END = f"""
update sessions set revoke_time = $3
where app_id = $1 and uid = $2 and revoke_time is null and ($4::text is null or digest = $4)
and ($5::text is null or digest <> $5) and ($6::text is null or (platform = $6 and social_id = $7))
returning digest, {NOTIFY}
"""


async def end(
    conn: Connection,
    app_id: str,
    uid: str,
    *,
    cache: SessionCache,
    now: datetime,
    digest: str | None = None,
    keep: str | None = None,
    identity: Identity | None = None,
) -> int:
    """End the sessions of a user and return their number.

    By default, all sessions end. Otherwise, only `digest`, only those of `identity`, or all except the digest
    `keep`. They are no longer accepted once the transaction of `conn` has committed, and their running streams end
    in all processes.
    """
    made_with = (None, None) if identity is None else (identity.platform, identity.social_id)
    ended = await conn.fetch(_END, app_id, uid, now, digest, keep, *made_with)
    digests = [row["digest"] for row in ended]
    await cache.forget(app_id, digests)
    return len(digests)


_REREAD = f"""
select digest, {NOTIFY} from sessions where app_id = $1 and uid = $2 and revoke_time is null
"""


async def reread(conn: Connection, app_id: str, uid: str, *, cache: SessionCache) -> None:
    """Make all processes read the rows of a user's sessions again, because the state of the user changes.

    `conn` is in a transaction that has locked the user, so that no session is added meanwhile.
    """
    rows = await conn.fetch(_REREAD, app_id, uid)
    await cache.forget(app_id, [row["digest"] for row in rows])


_NOT_ENDED = """
select app_id, digest from sessions join unnest($1::text[], $2::text[]) as asked (app_id, digest)
    using (app_id, digest)
where revoke_time is null
"""


async def not_ended(conn: Connection, keys: Collection[SessionKey]) -> set[SessionKey]:
    """Return those of `keys` whose sessions were not ended. Sessions that have expired count as not ended."""
    rows = await conn.fetch(_NOT_ENDED, [key.app_id for key in keys], [key.digest for key in keys])
    return {SessionKey(*row) for row in rows}


_FIND = """
select s.app_id, s.digest, s.uid, u.status = 'frozen',
       extract(epoch from s.last_seen)::float8, extract(epoch from s.expire_time)::float8,
       extract(epoch from statement_timestamp())::float8
from sessions s join users u using (app_id, uid)
where s.app_id = $1 and s.digest = $2 and s.revoke_time is null and u.status <> 'deactivated'
"""


async def find(conn: Connection, app_id: str, *, digest: str) -> Session | None:
    """Return the session, or `None` if it is revoked. The caller checks whether it has expired."""
    row = await conn.fetchrow(_FIND, app_id, digest)
    return None if row is None else Session(*row)


_TOUCH = "update sessions set last_seen = greatest(last_seen, $3) where app_id = $1 and digest = $2"


async def touch(conn: Connection, app_id: str, *, digest: str, now: datetime) -> None:
    await conn.execute(_TOUCH, app_id, digest, now)


async def current_session(
    database: Database, cache: SessionCache, *, app_id: str, digest: str, now: datetime, sliding_s: float
) -> Session | None:
    """Return the session from the cache or from its row, or `None` if it is revoked or has expired.

    Updates `last_seen` in the row if an update is due. While PostgreSQL is unavailable, no session can end, and all
    cached sessions are accepted.
    """
    cached, valkey_is_available = None, True
    try:
        cached = await cache.get(app_id, digest)
    except StoreError:
        valkey_is_available = False
    now_s = now.timestamp()
    if cached is None or not cache.trusts(cached):
        try:
            return await _stored(
                database, cache if valkey_is_available else None, app_id, digest, now=now, sliding_s=sliding_s
            )
        except DatabaseUnavailable:
            if cached is None:
                raise
    return cached if cached.alive(now_s, sliding_s=sliding_s) else None


async def _stored(
    database: Database, cache: SessionCache | None, app_id: str, digest: str, *, now: datetime, sliding_s: float
) -> Session | None:
    """Return the session from its row, and cache it."""
    now_s, touch_s = now.timestamp(), min(_TOUCH_S, sliding_s / 4)
    async with database.connection() as conn:
        session = await find(conn, app_id, digest=digest)
        if session is None or not session.alive(now_s, sliding_s=sliding_s):
            return None
        until_touch_s = touch_s - (now_s - session.last_seen_s)
        if until_touch_s <= 0:
            await touch(conn, app_id, digest=digest, now=now)
            return session
    if cache is not None:
        await _copy(cache, session, for_s=min(COPY_S, until_touch_s))
    return session


async def _copy(cache: SessionCache, session: Session, *, for_s: float) -> None:
    try:
        await cache.put(session, for_s=for_s)
    except StoreError:
        return  # The next reader reads the row again.


@dataclass(frozen=True, slots=True)
class ListedSession:
    """A session as its user sees it, with a public id and the place of the login."""

    digest: str
    platform: str
    """The platform of the identity that logged in."""
    create_time: datetime
    last_seen: datetime
    expire_time: datetime
    client_os: str
    user_agent: str
    address: str

    @property
    def session_id(self) -> str:
        return self.digest[:_ID_CHARACTERS]


_LIST = """
select digest, platform, create_time, last_seen, expire_time, client_os, user_agent, address
from sessions
where app_id = $1 and uid = $2 and revoke_time is null and expire_time > $3 and last_seen > $4
and ($5::text is null or left(digest, 32) = $5)
order by create_time desc, digest
"""


async def listed_sessions(
    conn: Connection, app_id: str, uid: str, *, now: datetime, sliding_s: float, session_id: str | None = None
) -> list[ListedSession]:
    """Return the valid sessions of a user, the newest first. With `session_id`, return only that one."""
    oldest = now - timedelta(seconds=sliding_s)
    return [ListedSession(**row) for row in await conn.fetch(_LIST, app_id, uid, now, oldest, session_id)]
