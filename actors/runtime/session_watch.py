"""Ends the running streams of sessions that have ended, in whichever process they run."""

import asyncio
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager

import structlog

from actors.runtime.actor import Actor
from actors.runtime.mailbox import SessionEnded
from actors.runtime.supervisor import Supervisor
from storage.accounts.ended_sessions import SessionKey, listen_for_announcements, listen_for_commits
from storage.accounts.session_cache import SessionCache
from storage.accounts.sessions import not_ended
from storage.postgres.database import Database
from storage.valkey.client import Valkey
from streams.tasks import background, stopping
from streams.wire.errors import StoreError

log = structlog.get_logger()

_CHECK_S = 0.5
_REMEMBER_S = 15.0
"""How long an announced session is watched. The announcement precedes the change of the row, and a request that was
authenticated before the announcement may start a stream after it."""
_MAX_REMEMBERED = 10_000


class SessionWatch:
    """Watches announced sessions, and ends their streams once their rows say that they have ended."""

    def __init__(self, database: Database, supervisor: Supervisor) -> None:
        self._database = database
        self._supervisor = supervisor
        self._announced: dict[SessionKey, float] = {}
        """When the watch of each session ends, earliest first."""
        self._may_have_missed = False
        """Whether announcements may have been lost, so that the sessions of all streams must be checked."""
        self._woken = asyncio.Event()

    def on_ended(self, keys: Collection[SessionKey] | None) -> None:
        """Watch `keys`. `None` means that announcements may have been lost."""
        if keys is None:
            self._may_have_missed = True
        else:
            until = time.monotonic() + _REMEMBER_S
            for key in keys:
                self._announced.pop(key, None)
                self._announced[key] = until
            while len(self._announced) > _MAX_REMEMBERED:
                del self._announced[next(iter(self._announced))]
        self._woken.set()

    async def run(self) -> None:
        """End streams until cancelled."""
        while not stopping():
            await self._woken.wait()
            self._woken.clear()
            try:
                await self._end_streams()
            except StoreError as error:
                log.warning("sessions.not_checked", error=str(error))
            self._drop_expired()
            if self._announced or self._may_have_missed:
                await asyncio.sleep(_CHECK_S)
                self._woken.set()

    async def _end_streams(self) -> None:
        suspects, checks_all = self._suspects(), self._may_have_missed
        self._may_have_missed = False
        if not suspects:
            return
        try:
            async with self._database.connection() as conn:
                alive = await not_ended(conn, suspects)
        except StoreError:
            self._may_have_missed |= checks_all
            raise
        for key in suspects.keys() - alive:
            for actor in suspects[key]:
                actor.send(SessionEnded())

    def _suspects(self) -> dict[SessionKey, list[Actor]]:
        """Return the running streams whose sessions must be checked."""
        suspects = defaultdict(list)
        for actor in self._supervisor.live():
            key = actor.ctx.session
            if key is None or actor.ctx.stop is not None:
                continue
            if self._may_have_missed or key in self._announced:
                suspects[key].append(actor)
        return suspects

    def _drop_expired(self) -> None:
        now = time.monotonic()
        while self._announced:
            key, until = next(iter(self._announced.items()))
            if until > now:
                return
            del self._announced[key]


@asynccontextmanager
async def open_session_watch(
    database: Database, valkey: Valkey, supervisor: Supervisor, cache: SessionCache, *, dsn: str
) -> AsyncIterator[None]:
    """Watch sessions during the block. `dsn`: the database, for the connection that listens to notifications."""
    watch = SessionWatch(database, supervisor)

    def on_announced(keys: Collection[SessionKey] | None) -> None:
        cache.drop_recent(keys or ())
        watch.on_ended(keys)

    def on_committed(keys: Collection[SessionKey]) -> None:
        cache.forget_later(keys)
        watch.on_ended(keys)

    def on_checked(since_s: float, checked_at: float) -> None:
        if cache.announced(since_s, checked_at):
            watch.on_ended(None)

    async with (
        background(watch.run()),
        background(listen_for_announcements(valkey, on_announced)),
        background(listen_for_commits(dsn, on_committed, on_checked=on_checked)),
    ):
        yield
