"""Sessions of signed-in users in Valkey, where each is cached for a short time.

A process uses a session that it has read from Valkey for half a second. So the end of a session takes effect in
every process within a second, even in a process that misses its announcement.
"""

import asyncio
import math
import time
from collections.abc import Collection
from contextlib import suppress
from typing import NamedTuple

from storage.accounts.ended_sessions import SessionKey, announcement
from storage.valkey.client import VALKEY_ERRORS, Valkey, map_errors, store_error
from storage.valkey.pipeline import Word
from streams.wire.codec import dumps, loads
from streams.wire.errors import StoreError

_ANNOUNCED_S = 0.6
"""How long cached sessions are trusted after the last check of PostgreSQL's announcements."""
TOMBSTONE_S = 60
"""Lifetime of a tombstone. It exceeds the duration of any read of a row that began before the tombstone was set."""
_RECENT_S = 0.5
"""How long a process uses a cached session without asking Valkey again."""
_MAX_RECENT = 10_000
_MAX_UNSENT = 10_000


class Session(NamedTuple):
    """A session that is not revoked. Times are in seconds since the Unix epoch."""

    app_id: str
    digest: str
    uid: str
    frozen: bool
    """Whether the account of the user is frozen and will be deactivated."""
    last_seen_s: float
    """Start of the sliding lifetime. Updated at most once an hour."""
    expire_s: float
    """End of the absolute lifetime."""
    read_s: float
    """When the row was read, on PostgreSQL's clock."""

    def alive(self, now_s: float, *, sliding_s: float) -> bool:
        return now_s < self.expire_s and now_s < self.last_seen_s + sliding_s


class SessionCache:
    """Cached sessions in Valkey, and tombstones that prevent outdated sessions from being cached.

    A reader may read a row just before it is revoked, and cache it afterwards. Therefore, a revoked session is not
    deleted from the cache but replaced by a tombstone. While the tombstone exists, the session cannot be cached and
    is read from its row. Tombstones that could not be written because Valkey was unavailable are written before the
    next read. Every process also writes the tombstones of sessions whose end PostgreSQL announces, before its next
    read. Sessions whose end may have been announced while this process was not connected to PostgreSQL are not
    trusted. Once a tombstone is written, this process has no older copy of the session.
    """

    def __init__(self, valkey: Valkey) -> None:
        self._valkey = valkey
        self._unsent: dict[SessionKey, None] = {}
        self._recent: dict[SessionKey, tuple[float, Session]] = {}
        """Sessions that were read from Valkey, and until when each is used, by `time.monotonic()`."""
        self._since_s = math.inf
        self._checked_at = -math.inf

    def announced(self, since_s: float, checked_at: float) -> bool:
        """Record that PostgreSQL has announced all ends of sessions from `since_s` to `checked_at`.

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
        """Before the commit, replace cached sessions with tombstones, and make all processes check their rows."""
        if not digests:
            return
        ended = [SessionKey(app_id, digest) for digest in digests]
        self.forget_later(ended)
        with suppress(StoreError):  # Sent before the next read of a session.
            await self._send(ended)

    def forget_later(self, keys: Collection[SessionKey]) -> None:
        """Replace cached sessions with tombstones before this process reads the next session."""
        self._unsent.update(dict.fromkeys(keys))
        while len(self._unsent) > _MAX_UNSENT:
            del self._unsent[next(iter(self._unsent))]

    async def _send(self, ended: Collection[SessionKey]) -> None:
        """Write the tombstones of `ended`, and announce their end."""
        commands: list[tuple[Word, ...]] = [
            ("SET", self._key(*session), b"", "EX", TOMBSTONE_S) for session in ended
        ]
        for app_id in {session.app_id for session in ended}:
            digests = [session.digest for session in ended if session.app_id == app_id]
            commands.append(announcement(self._valkey, app_id, digests))
        with map_errors():
            await asyncio.gather(*(self._valkey.call(*command) for command in commands))  # Sent in this order.
        self.drop_recent(ended)
        for session in ended:
            self._unsent.pop(session, None)

    def _key(self, app_id: str, digest: str) -> str:
        return self._valkey.key(f"{app_id}:{digest}", "session")
