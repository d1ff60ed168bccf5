"""Sessions of signed-in users: rows in PostgreSQL, cached in Valkey for a short time.

A process uses what it has read from Valkey for half a second. So the end of a session holds on every process within
a second, whether or not the process hears of it.
"""

import asyncio
import math
import time
from collections.abc import Collection
from contextlib import suppress
from datetime import datetime
from typing import NamedTuple

from storage.accounts.ended_sessions import NOTIFY, SessionKey, announcement
from storage.accounts.identities import Identity
from storage.postgres.database import Connection, Database
from storage.valkey.client import VALKEY_ERRORS, Valkey, map_errors, store_error
from storage.valkey.pipeline import Word
from streams.wire.codec import dumps, loads
from streams.wire.errors import DatabaseUnavailable, StoreError

COPY_S = 30.0
"""Maximum age of a cached session."""
_ANNOUNCED_S = 0.6
"""How long after the last check of the announcements of PostgreSQL cached sessions are trusted."""
TOMBSTONE_S = 60
"""Lifetime of a tombstone. Longer than any read of a row can take that began before the tombstone was set."""
_RECENT_S = 0.5
"""How long a process uses a cached session without asking Valkey again."""
_MAX_RECENT = 10_000
_TOUCH_S = 3600.0
_MAX_UNSENT = 10_000


class Session(NamedTuple):
    """A session that is not revoked. Times are in seconds since the Unix epoch."""

    app_id: str
    digest: str
    uid: str
    frozen: bool
    """Whether the account of the user is frozen, to be deactivated."""
    last_seen_s: float
    """Start of the sliding lifetime. Updated at most once an hour."""
    expire_s: float
    """End of the absolute lifetime."""
    read_s: float
    """When the row was read, on PostgreSQL's clock."""

    def alive(self, now_s: float, *, sliding_s: float) -> bool:
        return now_s < self.expire_s and now_s < self.last_seen_s + sliding_s


class Client(NamedTuple):
    """Where a session is made, for its user to recognize it. Empty: unknown."""

    os: str = ""
    """The operating system, as the client names it."""
    user_agent: str = ""
    address: str = ""


_END = f"""
update sessions set revoke_time = $3
where app_id = $1 and uid = $2 and revoke_time is null and ($4::text is null or digest = $4)
and ($5::text is null or digest <> $5) and ($6::text is null or (platform = $6 and social_id = $7))
returning digest, {NOTIFY}
"""  # noqa: S608 - constants


async def end(
    conn: Connection,
    app_id: str,
    uid: str,
    *,
    cache: "SessionCache",
    now: datetime,
    digest: str | None = None,
    keep: str | None = None,
    identity: Identity | None = None,
) -> int:
    """End the sessions of a user and return their number.

    By default all end. Otherwise only `digest`, only those made with `identity`, or all but the digest `keep`. They
    are no longer accepted once the transaction of `conn` has committed, and their running streams end in all
    processes.
    """
    made_with = (None, None) if identity is None else (identity.platform, identity.social_id)
    ended = await conn.fetch(_END, app_id, uid, now, digest, keep, *made_with)
    digests = [row["digest"] for row in ended]
    await cache.forget(app_id, digests)
    return len(digests)


_REREAD = f"""
select digest, {NOTIFY} from sessions where app_id = $1 and uid = $2 and revoke_time is null
"""  # noqa: S608 - constants


async def reread(conn: Connection, app_id: str, uid: str, *, cache: "SessionCache") -> None:
    """Make all processes read the sessions of a user from their rows again, because the state of the user changes.

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


class SessionCache:
    """Cached sessions in Valkey, and tombstones that prevent outdated sessions from being cached.

    A reader may have read a row just before it is revoked and cache it afterwards. Therefore a revoked session is
    not deleted from the cache but replaced by a tombstone: as long as that exists, the session cannot be cached and
    is read from its row. Tombstones that could not be written because Valkey was unavailable are written before
    the next read. Every process also writes those of sessions whose end PostgreSQL announces, before its next read.
    Sessions whose end may have been announced while this process was not connected to PostgreSQL are not trusted.
    Once a tombstone is written, this process has no copy of the session that is older.
    """

    def __init__(self, valkey: Valkey) -> None:
        self._valkey = valkey
        self._unsent: dict[SessionKey, None] = {}
        self._recent: dict[SessionKey, tuple[float, Session]] = {}
        """What was read from Valkey, and until when it is used, by `time.monotonic()`."""
        self._since_s = math.inf
        self._checked_at = -math.inf

    def announced(self, since_s: float, checked_at: float) -> bool:
        """Note that PostgreSQL has announced all ends of sessions from `since_s` to `checked_at`.

        `since_s` is on PostgreSQL's clock, `checked_at` on the monotonic one. Returns whether `since_s` is new, so
        that announcements before it may have been lost.
        """
        is_new = since_s != self._since_s
        self._since_s, self._checked_at = since_s, checked_at
        return is_new

    def trusts(self, session: Session) -> bool:
        """Return whether the end of a cached session would have been announced to this process."""
        return session.read_s > self._since_s and time.monotonic() < self._checked_at + _ANNOUNCED_S

    async def get(self, app_id: str, digest: str) -> Session | None:
        """Return the cached session, or `None`. Raises `StoreError` if Valkey is unavailable."""
        if self._unsent:
            await self._send(list(self._unsent))
        key, now = SessionKey(app_id, digest), time.monotonic()
        recent = self._recent.get(key)
        if recent is not None and now < recent[0]:
            return recent[1]
        try:
            raw = await self._valkey.call("GET", self._key(app_id, digest))
        except VALKEY_ERRORS as error:
            raise store_error(error) from error
        if not raw:
            return None
        session = Session(app_id, digest, *loads(raw))
        self._recent[key] = now + _RECENT_S, session
        if len(self._recent) > _MAX_RECENT:
            del self._recent[next(iter(self._recent))]
        return session

    def drop_recent(self, keys: Collection[SessionKey]) -> None:
        """Read sessions from Valkey again when they are used next."""
        for key in keys:
            self._recent.pop(key, None)

    async def put(self, session: Session, *, for_s: float) -> None:
        """Cache a session that was just read from its row, unless there is an entry or a tombstone."""
        value = [session.uid, session.frozen, session.last_seen_s, session.expire_s, session.read_s]
        with map_errors():
            await self._valkey.call(
                "SET",
                self._key(session.app_id, session.digest),
                dumps(value),
                "NX",
                "PX",
                max(1, int(for_s * 1000)),
            )

    async def forget(self, app_id: str, digests: Collection[str]) -> None:
        """Replace cached sessions by tombstones, and make all processes check their rows, before the commit."""
        if not digests:
            return
        ended = [SessionKey(app_id, digest) for digest in digests]
        self.forget_later(ended)
        with suppress(StoreError):  # Sent before the next read of a session.
            await self._send(ended)

    def forget_later(self, keys: Collection[SessionKey]) -> None:
        """Replace cached sessions by tombstones before this process reads the next session."""
        self._unsent.update(dict.fromkeys(keys))
        while len(self._unsent) > _MAX_UNSENT:
            del self._unsent[next(iter(self._unsent))]

    async def _send(self, ended: Collection[SessionKey]) -> None:
        """Write the tombstones of `ended`, and announce their end."""
        commands: list[tuple[Word, ...]] = [("SET", self._key(*each), b"", "EX", TOMBSTONE_S) for each in ended]
        for app_id in {session.app_id for session in ended}:
            digests = [session.digest for session in ended if session.app_id == app_id]
            commands.append(announcement(self._valkey, app_id, digests))
        with map_errors():
            await asyncio.gather(*(self._valkey.call(*command) for command in commands))  # In this order.
        self.drop_recent(ended)
        for session in ended:
            self._unsent.pop(session, None)

    def _key(self, app_id: str, digest: str) -> str:
        return self._valkey.key(f"{app_id}:{digest}", "session")


async def current(
    database: Database, cache: SessionCache, *, app_id: str, digest: str, now: datetime, sliding_s: float
) -> Session | None:
    """Return the session from the cache or from its row, or `None` if it is revoked or has expired.

    Updates `last_seen` in the row if that is due. While PostgreSQL is unavailable, no session can be ended, and all
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
