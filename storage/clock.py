"""The time of an app: real time plus the app's offset, which is zero except on development servers.

Whatever an app's rules compare with the time takes it from here: `AppClock.now` in Python, by the clock of this
machine, and `app_now` in SQL, by the clock of the database, which Python could only read by a round trip. Real time
is for facts about processes, vendors and callers.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

from storage.jobs import jobs
from storage.postgres.database import Database
from storage.valkey.change_feed import announce, following
from storage.valkey.client import Valkey

_TOPIC = "clocks"


def app_now(offset_s: str) -> str:
    """Return the SQL for an app's time by the clock of the database. `offset_s`: the placeholder of its offset."""
    return f"(now() + make_interval(secs => {offset_s}))"


class AppClock:
    """The times of all apps, as this process knows them."""

    def __init__(self, database: Database, valkey: Valkey, *, movable: bool) -> None:
        self._database = database
        self._valkey = valkey
        self._movable = movable
        self._offsets_s: Mapping[str, float] = {}
        self._refreshing = asyncio.Lock()

    def offset_s(self, app_id: str) -> float:
        """Return by how many seconds the app's time is ahead of real time."""
        return self._offsets_s.get(app_id, 0.0)

    def now(self, app_id: str) -> datetime:
        """Return the app's time by the clock of this machine, in UTC."""
        now, offset_s = datetime.now(UTC), self.offset_s(app_id)
        return now + timedelta(seconds=offset_s) if offset_s else now

    async def move(self, app_id: str, *, offset_s: float) -> None:
        """Set the app's offset. The times of its waiting jobs move too. Other processes follow within a second."""
        assert self._movable, "only development servers have the endpoint that moves clocks"
        try:
            async with self._refreshing, self._database.transaction() as conn:
                await conn.execute(_ADD, app_id)
                before_s: float = await conn.fetchval(_LOCK, app_id)
                await conn.execute(_SET, app_id, offset_s)
                await jobs.advance(conn, app_id, by_s=offset_s - before_s)
                # Before jobs become due by the commit, because a job that is due must not see the time before.
                self._offsets_s = {**self._offsets_s, app_id: offset_s}
        finally:
            await self.refresh()
        await announce(self._valkey, topic=_TOPIC)

    async def refresh(self) -> None:
        """Read the offsets of all apps."""
        # One at a time: offsets that were read before a change must not replace those that were read after it.
        async with self._refreshing, self._database.connection() as conn:
            rows = await conn.fetch("select app_id, offset_s from app_clocks where offset_s <> 0")
            self._offsets_s = {row["app_id"]: row["offset_s"] for row in rows}


_ADD = "insert into app_clocks (app_id, offset_s) values ($1, 0) on conflict do nothing"
_LOCK = "select offset_s from app_clocks where app_id = $1 for update"
_SET = "update app_clocks set offset_s = $2 where app_id = $1"


@asynccontextmanager
async def open_clock(database: Database, valkey: Valkey, *, movable: bool) -> AsyncIterator[AppClock]:
    """Yield the clock of all apps. If it is not movable, stored offsets are never read."""
    clock = AppClock(database, valkey, movable=movable)
    if not movable:
        yield clock
        return
    await clock.refresh()
    async with following(valkey, clock.refresh, topic=_TOPIC):
        yield clock
