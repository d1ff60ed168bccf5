"""Jobs that find events of payment platforms that no webhook has delivered, and what they have compared."""

from collections.abc import Sequence
from datetime import datetime
from typing import ClassVar

from storage.configs.rows import ConfigKey
from storage.jobs.jobs import Job
from storage.postgres.database import Connection


class FindMissedEvents(Job):
    """Compare the events of all payment platforms of all apps with the inbox."""

    task: ClassVar[str] = "find_missed_events"


class CompareEvents(Job):
    """Compare the events of one config with the inbox, and store those that no webhook has delivered."""

    task: ClassVar[str] = "compare_events"
    timeout_s: ClassVar[float] = 600
    app_id: str
    kind: str
    config: str


_READ = "select compared_at from event_cursors where app_id = $1 and kind = $2 and config = $3"
_SET = """
insert into event_cursors (app_id, kind, config, compared_at) values ($1, $2, $3, $4)
on conflict (app_id, kind, config) do update set compared_at = excluded.compared_at
"""


async def compared_until(conn: Connection, key: ConfigKey) -> datetime | None:
    """Return the time up to which the events of a config are compared. `None`: they never were."""
    until: datetime | None = await conn.fetchval(_READ, *key)
    return until


async def set_compared(conn: Connection, key: ConfigKey, *, until: datetime) -> None:
    await conn.execute(_SET, *key, until)


_ADD_FOREIGN = """
insert into foreign_events (app_id, kind, config, event_id, happened_at) values ($1, $2, $3, $4, $5)
on conflict do nothing
"""
_FOREIGN = """
select event_id from foreign_events where app_id = $1 and kind = $2 and config = $3 and event_id = any($4)
"""
_FORGET = "delete from foreign_events where app_id = $1 and kind = $2 and config = $3 and happened_at < $4"


async def add_foreign(conn: Connection, key: ConfigKey, *, event_id: str, at: datetime) -> None:
    """Remember an event that a config has listed, and that is not about one of its objects."""
    await conn.execute(_ADD_FOREIGN, *key, event_id, at)


async def foreign(conn: Connection, key: ConfigKey, *, event_ids: Sequence[str]) -> set[str]:
    """Return which of these events are known not to be about objects of a config."""
    return {row["event_id"] for row in await conn.fetch(_FOREIGN, *key, event_ids)}


async def forget_foreign(conn: Connection, key: ConfigKey, *, before: datetime) -> None:
    """Forget the events that happened before a time, because they are not listed again."""
    await conn.execute(_FORGET, *key, before)
