"""Sessions of signed-in users: rows are the truth, Valkey a short copy in front of them.

Nothing is kept in the process. A copy in Valkey costs one round trip to read and is gone for every node
the moment that it is barred; a copy in each process would have to be hunted down within a second.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

from storage.identities import Identity
from storage.postgres import Connection, Database
from storage.redis import FAULTS, Valkey, fault, map_errors
from streams.wire.codec import dumps, loads
from streams.wire.errors import StoreError

COPY_S = 30.0
TOMBSTONE_S = 60
"""Longer than any read of a row can take that began before the bar."""
_TOUCH_S = 3600.0
_OWED = 10_000


class Session(NamedTuple):
    """Times are seconds of the Unix clock."""

    app_id: str
    digest: str
    uid: str
    frozen: bool
    """Whether the user waits for its deactivation."""
    last_seen_s: float
    """Renewed at most hourly: the sliding lifetime counts from here."""
    expire_s: float
    """End of the absolute lifetime."""

    def alive(self, now_s: float, *, sliding_s: float) -> bool:
        return now_s < self.expire_s and now_s < self.last_seen_s + sliding_s


_OPEN = """
insert into sessions (app_id, digest, uid, platform, social_id, create_time, last_seen, expire_time)
values ($1, $2, $3, $4, $5, $6, $6, $7)
"""


async def add(
    conn: Connection, digest: str, *, identity: Identity, uid: str, now: datetime, absolute_s: float
) -> None:
    """Begin a session of `uid`, made with `identity`."""
    expire_time = now + timedelta(seconds=absolute_s)
    await conn.execute(_OPEN, identity.app_id, digest, uid, identity.platform, identity.social_id, now, expire_time)


_REVOKE_SURPLUS = """
update sessions set revoke_time = $3
where app_id = $1 and digest in (
    select digest from sessions where app_id = $1 and uid = $2 and revoke_time is null
    order by create_time desc, digest offset $4
)
returning digest
"""


async def revoke_surplus(conn: Connection, uid: str, *, app_id: str, now: datetime, keep: int) -> list[str]:
    """Revoke all but the `keep` newest sessions of a user; their digests, to be barred before the commit."""
    rows = await conn.fetch(_REVOKE_SURPLUS, app_id, uid, now, keep)
    return [row["digest"] for row in rows]


_REVOKE = """
update sessions set revoke_time = $3 where app_id = $1 and digest = $2 and revoke_time is null
returning digest
"""


async def revoke(conn: Connection, digest: str, *, app_id: str, now: datetime) -> list[str]:
    """Revoke one session; its digest, to be barred before the commit, unless it was revoked before."""
    rows = await conn.fetch(_REVOKE, app_id, digest, now)
    return [row["digest"] for row in rows]


_DELETE_DEAD = """
delete from sessions where app_id = $1 and uid = $2 and (expire_time < $3 or revoke_time < $3)
"""


async def delete_dead(conn: Connection, uid: str, *, app_id: str, before: datetime) -> None:
    """Drop the sessions of a user that ended before that time."""
    await conn.execute(_DELETE_DEAD, app_id, uid, before)


_FIND = """
select s.app_id, s.digest, s.uid, u.status = 'frozen',
       extract(epoch from s.last_seen)::float8, extract(epoch from s.expire_time)::float8
from sessions s join users u using (app_id, uid)
where s.app_id = $1 and s.digest = $2 and s.revoke_time is null and u.status <> 'deactivated'
"""


async def find(conn: Connection, digest: str, *, app_id: str) -> Session | None:
    """The session, unless it is revoked; whether it is still alive is the caller's question."""
    row = await conn.fetchrow(_FIND, app_id, digest)
    return None if row is None else Session(*row)


_TOUCH = "update sessions set last_seen = greatest(last_seen, $3) where app_id = $1 and digest = $2"


async def touch(conn: Connection, digest: str, *, app_id: str, now: datetime) -> None:
    await conn.execute(_TOUCH, app_id, digest, now)


class SessionCache:
    """Copies of sessions in Valkey, and bars that keep stale ones out.

    A reader may hold a row that is being revoked and copy it after the revocation. Therefore a revoked
    session is not deleted but barred: while the bar stands nothing can be copied and everyone reads the
    row. Bars that Valkey could not take are owed, and sent before the next read.
    """

    def __init__(self, valkey: Valkey) -> None:
        self._valkey = valkey
        self._owed: dict[str, None] = {}

    async def get(self, app_id: str, digest: str) -> Session | None:
        """The copy, if there is one; `StoreError` without Valkey."""
        if self._owed:
            await self._send(list(self._owed))
        try:
            raw = await self._valkey.call("GET", self._key(app_id, digest))
        except FAULTS as error:
            raise fault(error) from error
        return Session(app_id, digest, *loads(raw)) if raw else None

    async def put(self, session: Session, *, for_s: float) -> None:
        """Copy a row just read, unless a copy or a bar is there."""
        value = [session.uid, session.frozen, session.last_seen_s, session.expire_s]
        with map_errors():
            await self._valkey.client.set(
                self._key(session.app_id, session.digest),
                dumps(value),
                nx=True,
                px=max(1, int(for_s * 1000)),
            )

    async def tombstone(self, app_id: str, digests: Iterable[str]) -> None:
        """Send all readers of these sessions to the rows. Call it before the change is committed."""
        keys = [self._key(app_id, digest) for digest in digests]
        if not keys:
            return
        self._owed.update(dict.fromkeys(keys))
        try:
            await self._send(keys)
        except StoreError:
            while len(self._owed) > _OWED:
                del self._owed[next(iter(self._owed))]

    async def _send(self, keys: list[str]) -> None:
        with map_errors():
            async with self._valkey.client.pipeline(transaction=False) as pipeline:
                for key in keys:
                    pipeline.set(key, b"", ex=TOMBSTONE_S)
                await pipeline.execute()
        for key in keys:
            self._owed.pop(key, None)

    def _key(self, app_id: str, digest: str) -> str:
        return self._valkey.key(f"{app_id}:{digest}", "session")


async def current(
    database: Database, copies: SessionCache, *, app_id: str, digest: str, now: datetime, sliding_s: float
) -> Session | None:
    """The session while it lives: its copy, else its row, which is touched when that is due."""
    now_s = now.timestamp()
    try:
        session = await copies.get(app_id, digest)
        valkey_is_there = True
    except StoreError:
        session, valkey_is_there = None, False
    if session is not None:
        return session if session.alive(now_s, sliding_s=sliding_s) else None
    touch_s = min(_TOUCH_S, sliding_s / 4)
    async with database.connection() as conn:
        session = await find(conn, digest, app_id=app_id)
        if session is None or not session.alive(now_s, sliding_s=sliding_s):
            return None
        until_touch_s = touch_s - (now_s - session.last_seen_s)
        if until_touch_s <= 0:
            await touch(conn, digest, app_id=app_id, now=now)
            return session
    if valkey_is_there:
        await _copy(copies, session, for_s=min(COPY_S, until_touch_s))
    return session


async def _copy(copies: SessionCache, session: Session, *, for_s: float) -> None:
    try:
        await copies.put(session, for_s=for_s)
    except StoreError:
        return  # the next reader finds the row again
