"""Jobs whose worker has died while it ran them."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

from storage.jobs import UNIQUE_WHILE_WAITING, AlreadyWaits
from storage.postgres import Connection, on_conflict

_IS_STALLED = """
status = 'doing' and (worker_id is null or worker_id in (
    select id from procrastinate_workers where last_heartbeat < now() - make_interval(secs => $1)))
"""


class StalledJob(NamedTuple):
    job_id: int
    task: str


_FIND = f"select id, task_name from procrastinate_jobs where {_IS_STALLED} order by id"  # noqa: S608 - constants


async def find(conn: Connection, *, stalled_s: float) -> list[StalledJob]:
    """Return the jobs of workers without a heartbeat for `stalled_s`."""
    return [StalledJob(*row) for row in await conn.fetch(_FIND, stalled_s)]


@dataclass(frozen=True, slots=True)
class Recovered:
    """What has become of a job. `dropped`: another one with its key waits, and does the same work."""

    status: Literal["todo", "failed", "dropped"]
    attempts: int


_RECOVER = f"""
update procrastinate_jobs set attempts = attempts + 1, scheduled_at = now(),
    status = (case when attempts + 1 < $3 then 'todo' else 'failed' end)::procrastinate_job_status
where id = $2 and {_IS_STALLED} returning status::text, attempts
"""  # noqa: S608 - constants
_DROP = f"""
delete from procrastinate_jobs where id = $2 and {_IS_STALLED}
returning 'dropped' as status, attempts + 1 as attempts
"""  # noqa: S608 - constants


async def recover(conn: Connection, job: StalledJob, *, stalled_s: float, attempts: int) -> Recovered | None:
    """Make a job due again, or hold it if that was the last of its `attempts`.

    Return `None` if another worker has recovered it meanwhile, and may already run it.
    """
    try:
        with on_conflict(UNIQUE_WHILE_WAITING, AlreadyWaits):
            async with conn.transaction():
                row = await conn.fetchrow(_RECOVER, stalled_s, job.job_id, attempts)
    except AlreadyWaits:
        row = await conn.fetchrow(_DROP, stalled_s, job.job_id)
    return None if row is None else Recovered(row["status"], row["attempts"])
