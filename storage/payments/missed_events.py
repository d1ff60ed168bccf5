"""Jobs that find events of payment platforms that no webhook has delivered, and how far they have compared."""

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
