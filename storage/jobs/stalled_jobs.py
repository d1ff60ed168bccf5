"""Jobs whose worker has died while it ran them."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

from storage.jobs.failures import COLUMNS, REPLACE, WORKER_DIED, columns_of, failure
from storage.jobs.jobs import UNIQUE_WHILE_WAITING
from storage.postgres.database import Connection, on_conflict

_IS_STALLED = """
status = 'doing' and (worker_id is null or worker_id in (
    select id from procrastinate_workers where last_heartbeat < now() - make_interval(secs => $1)))
"""


MAX_DEATHS = 10
"""A job is held after this many deaths of its workers, because it seems to kill them."""
DIED = failure(WORKER_DIED, f"its workers died {MAX_DEATHS} times")
_MAX_WAIT_S = 30


class StalledJob(NamedTuple):
    job_id: int
    task: str


_FIND = f"select id, task_name from procrastinate_jobs where {_IS_STALLED} order by id"


async def find(conn: Connection, *, stalled_s: float) -> list[StalledJob]:
    """Return the jobs of workers without a heartbeat for `stalled_s`."""
    return [StalledJob(*row) for row in await conn.fetch(_FIND, stalled_s)]


@dataclass(frozen=True, slots=True)
class Recovered:
    """The outcome for a job. `dropped`: another job with its key waits, and does the same work."""

    status: Literal["todo", "failed", "dropped"]
    attempts: int


# The wait is random, so that jobs do not always run beside a job that kills their worker.
_RECOVER = f"""
with recovered as (
    update procrastinate_jobs set attempts = attempts + 1, priority = priority + 1,
        scheduled_at = now() + make_interval(secs => random() * least({_MAX_WAIT_S}, 2 ^ priority)),
        status = (case when priority + 1 < {MAX_DEATHS} then 'todo' else 'failed' end)::procrastinate_job_status
    where id = $2 and {_IS_STALLED} returning status::text, attempts
), recorded as (
    insert into job_failures (job_id, {", ".join(COLUMNS)})
    select $2, $3, $4, $5, $6, $7 from recovered where status = 'failed' {REPLACE}
)
select status, attempts from recovered
"""
_DROP = f"""
delete from procrastinate_jobs where id = $2 and {_IS_STALLED}
returning 'dropped' as status, attempts + 1 as attempts
"""


class _AlreadyWaits(Exception):
    """Another job with the same key waits."""


async def recover(conn: Connection, job: StalledJob, *, stalled_s: float) -> Recovered | None:
    """Make a job due again within 30 s, or hold it if it seems to kill its workers.

    The deaths are counted in the priority of the job, which then runs before others. They do not count as failures.
    Return `None` if another worker has recovered it meanwhile, and may already run it. `conn` is in no transaction.
    """
    try:
        with on_conflict(UNIQUE_WHILE_WAITING, _AlreadyWaits):
            row = await conn.fetchrow(_RECOVER, stalled_s, job.job_id, *columns_of(job.task, DIED).values())
    except _AlreadyWaits:
        row = await conn.fetchrow(_DROP, stalled_s, job.job_id)
    return None if row is None else Recovered(row["status"], row["attempts"])
