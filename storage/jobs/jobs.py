"""Jobs: messages that a worker handles later.

A job is stored in the caller's transaction, so it exists if that commits. The tables and functions are those of
procrastinate. `app/work/worker.py` runs the jobs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import ClassVar

from storage.postgres.database import Connection
from streams.wire.model import Model

QUEUE = "parley"
UNIQUE_WHILE_WAITING = "procrastinate_jobs_queueing_lock_idx_v1"
IS_HELD = "status in ('failed', 'aborted')"
"""`aborted`: the handler raised `CancelledError` in the last attempt, although its worker was not stopped."""


class Job(Model):
    """A message. Its class defines how the job is run.

    A handler may run more than once for the same message, because a worker can die after the handler has finished.
    The message of a job that concerns one app has a field `app_id`, by which the job follows the app's clock. Jobs
    that concern a user are found by the fields `uid`, `platform` and `social_id`, or `recipient`. A held job with a
    field `expires_s` is deleted after that time.
    """

    task: ClassVar[str]
    """The name in the database. It must not change while jobs of this kind are stored."""
    attempts: ClassVar[int] = 5
    """The number of attempts that may fail before the job is held for an operator. The death of a worker is not a
    failure."""
    retry_after_s: ClassVar[float] = 10
    """The wait before the second attempt. It doubles with each further attempt, up to an hour."""
    last_after_s: ClassVar[float | None] = None
    """The time from the first to the last attempt. `None`: the doubled wait determines when the last attempt is
    made."""
    timeout_s: ClassVar[float] = 300
    """The time limit of one attempt."""
    private: ClassVar[frozenset[str]] = frozenset()
    """The fields with texts of users, which not every operator may read."""


def private_fields(task: str) -> frozenset[str]:
    """Return the private fields of a kind of job."""
    return next((kind.private for kind in Job.__subclasses__() if kind.task == task), frozenset())


def tasks() -> frozenset[str]:
    """Return the names of all kinds of jobs."""
    return frozenset(kind.task for kind in Job.__subclasses__())


class RunScheduled(Job):
    """Run all jobs that have a schedule once, because the clock of an app was moved."""

    task: ClassVar[str] = "run_scheduled"


class RemoveExpired(Job):
    """Delete the expired data of all apps: sessions, conversations, files, webhooks, and the like."""

    task: ClassVar[str] = "remove_expired"
    timeout_s: ClassVar[float] = 3000


class MakePartitions(Job):
    """Add the partitions of the coming months to the tables that have one for each month."""

    task: ClassVar[str] = "make_partitions"


class ExportUser(Job):
    """Write the file of an export of a user's data."""

    task: ClassVar[str] = "export_user"
    timeout_s: ClassVar[float] = 3000
    app_id: str
    uid: str
    export_id: str


class RemoveObjects(Job):
    """Delete objects to which no row refers any more."""

    task: ClassVar[str] = "remove_objects"
    attempts: ClassVar[int] = 12
    keys: list[str]


class VerifyLedger(Job):
    """Compare the assets of all users with the ledger."""

    task: ClassVar[str] = "verify_ledger"
    timeout_s: ClassVar[float] = 3000


class WorkWebhook(Job):
    """Process a stored webhook, as its source specifies. Retried for up to four hours."""

    task: ClassVar[str] = "work_webhook"
    attempts: ClassVar[int] = 12
    app_id: str
    webhook_id: str


_ENQUEUE = """
insert into procrastinate_jobs (queue_name, task_name, queueing_lock, args, scheduled_at)
values ($1, $2, $3, $4, $5)
on conflict (queueing_lock) where status = 'todo' do nothing returning id
"""


async def enqueue(
    conn: Connection, job: Job, *, key: str | None = None, run_at: datetime | None = None
) -> int | None:
    """Store `job` and return its id. It runs once the transaction of `conn` has committed.

    `key`: at most one job with this key waits at a time. Returns None if one already waits. Jobs with the same key
    do the same work, so a failed job is dropped instead of retried if another already waits. `run_at`: the job does
    not run before this time. It is real time, not that of an app.
    """
    message = job.model_dump(mode="json")
    job_id: int | None = await conn.fetchval(_ENQUEUE, QUEUE, job.task, key, message, run_at)
    return job_id


def due_in(seconds: float) -> datetime:
    """Return the `run_at` of a job that is due after `seconds`."""
    return datetime.now(UTC) + timedelta(seconds=seconds)


async def cancel_job(conn: Connection, *, key: str) -> None:
    """Delete the job that waits with `key`, if there is one."""
    await conn.execute("delete from procrastinate_jobs where queueing_lock = $1 and status = 'todo'", key)


_ERASE = f"""
delete from procrastinate_jobs where (status = 'todo' or {IS_HELD}) and task_name = any($3)
and args ->> 'app_id' = $1 and (
    args ->> 'uid' = $2 or (args ->> 'platform', args ->> 'social_id') in (
        select platform, social_id from identities where app_id = $1 and uid = $2)
    or (args ->> 'uid' is null and args ->> 'recipient' = any($4)))
returning 1
"""


async def erase(
    conn: Connection, app_id: str, uid: str, *, tasks: Sequence[str], recipients: Sequence[str] = ()
) -> int:
    """Delete the waiting and held jobs of `tasks` that concern a user. Return their number.

    Such a job names the user or an identity of the user, or it names no user but one of `recipients`.
    """
    return len(await conn.fetch(_ERASE, app_id, uid, tasks, recipients))


_DELETE_EXPIRED = f"""
with expired as (
    select id from procrastinate_jobs
    where {IS_HELD} and args ->> 'app_id' = $1 and (args ->> 'expires_s')::float8 <= $2
    limit $3 for update skip locked
)
delete from procrastinate_jobs using expired where procrastinate_jobs.id = expired.id
"""


async def delete_expired(conn: Connection, app_id: str, *, before: datetime, limit: int) -> int:
    """Delete at most `limit` held jobs that have expired by the given time. Return their number."""
    status: str = await conn.execute(_DELETE_EXPIRED, app_id, before.timestamp(), limit)
    return int(status.rpartition(" ")[2])


_ADVANCE = """
update procrastinate_jobs set scheduled_at = scheduled_at - make_interval(secs => $2)
where status = 'todo' and scheduled_at is not null and args ->> 'app_id' = $1
"""


async def advance(conn: Connection, app_id: str, *, by_s: float) -> None:
    """Make the waiting jobs of an app due earlier, or later if `by_s` is negative, because its clock was moved."""
    await conn.execute(_ADVANCE, app_id, by_s)


_RUN_NOW = f"""
update procrastinate_jobs set status = 'todo', attempts = 0, priority = 0, scheduled_at = null,
    queueing_lock = case when status = 'todo' then queueing_lock end
where id = $1 and (status = 'todo' or {IS_HELD}) returning true
"""


async def run_now(conn: Connection, job_id: int) -> bool:
    """Make a job that waits or is held due now, with all its attempts. Return `False` if there is no such job.

    A held job loses its key, because another one with the key may wait.
    """
    return await conn.fetchval(_RUN_NOW, job_id) is not None


@dataclass(frozen=True, slots=True)
class JobCount:
    task: str
    status: str
    """`todo`, `doing` or `failed` (held)."""
    count: int
    oldest_s: float
    """Seconds since the oldest of these jobs was due, or 0 if none is due yet."""


# Of the jobs that are due at once, the one with the lowest id has waited longest.
_COUNTS = """
with counted as (
    select task_name, case when status = 'aborted' then 'failed' else status::text end as status, count(*) as count,
        min(scheduled_at) as due_at, min(id) filter (where scheduled_at is null) as first_id
    from procrastinate_jobs where status in ('todo', 'doing', 'failed', 'aborted') group by 1, 2
)
select task_name, status, count, coalesce(extract(epoch from now() - least(due_at, (
    select min(at) from procrastinate_events where job_id = first_id))), 0)::float8 as oldest_s
from counted
"""


async def job_counts(conn: Connection) -> Sequence[JobCount]:
    """Return the number of waiting, running and held jobs of each kind."""
    return [
        JobCount(row["task_name"], row["status"], row["count"], max(0.0, row["oldest_s"]))
        for row in await conn.fetch(_COUNTS)
    ]
