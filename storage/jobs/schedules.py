"""The jobs that workers enqueue at fixed times, and when they last did so."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from storage.postgres.database import Connection

_ALIVE_S = 30
"""A worker reports every two seconds."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """The fields are columns."""

    task: str
    schedule: str
    """In cron's format and UTC. A sixth field contains seconds."""
    last_at: datetime | None
    """The last time for which a job was enqueued. `None`: no worker has enqueued one yet."""
    last: Literal["todo", "doing", "failed"] | None
    """The state of that job. `None`: it has succeeded, or there is none."""


_REPLACE = """
with removed as (delete from job_schedules where task <> all($1))
insert into job_schedules (task, schedule) select * from unnest($1::text[], $2::text[])
on conflict (task) do update set schedule = excluded.schedule
"""


async def replace(conn: Connection, schedules: Mapping[str, str]) -> None:
    """Store the schedules of a worker that starts. Those of other workers are forgotten."""
    await conn.execute(_REPLACE, list(schedules), list(schedules.values()))


_ALL = """
select scheduled.task, scheduled.schedule, to_timestamp(last.defer_timestamp) as last_at,
    case when job.status = 'aborted' then 'failed' else job.status::text end as last
from job_schedules scheduled
left join lateral (
    select defer_timestamp, job_id from procrastinate_periodic_defers where task_name = scheduled.task
    order by defer_timestamp desc limit 1
) last on true
left join procrastinate_jobs job on job.id = last.job_id and job.status in ('todo', 'doing', 'failed', 'aborted')
order by scheduled.task
"""


async def all_schedules(conn: Connection) -> list[Schedule]:
    return [Schedule(**row) for row in await conn.fetch(_ALL)]


_WORKERS = """
select count(*) from procrastinate_workers where last_heartbeat > now() - make_interval(secs => $1)
"""


async def workers(conn: Connection) -> int:
    """Return the number of workers that run."""
    count: int = await conn.fetchval(_WORKERS, _ALIVE_S)
    return count
