"""Admin API of jobs: queues, schedules, and held jobs, which are read in groups, run again or dropped."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from croniter import croniter
from pydantic import BeforeValidator, Field

from app.admin.area import FOR_EDITORS, FOR_VIEWERS
from app.admin.reasons import origin_with_reason
from app.http.paging import Page, SortedQuery, page_of
from app.http.rows.endpoint import Call, Endpoint
from app.http.rows.inputs import Body, Path, Query
from app.http.rows.replies import Empty
from app.http.rows.transactions import Transaction
from storage.jobs import held as held_jobs
from storage.jobs import jobs, schedules
from storage.jobs.held import Filter, HeldGroup, HeldJob, ManyAction
from storage.jobs.schedules import Schedule
from storage.operators.operators import Role
from streams.wire.codec import rfc3339
from streams.wire.errors import ItemNotFound, listed
from streams.wire.model import Model, QueryInt

_ID_DIGITS = 18
_PRIVATE = {"private": True}


class JobNotHeld(ItemNotFound):
    """No held job has this `job_id`."""

    def __init__(self, job_id: str) -> None:
        super().__init__(f"job {listed([job_id])} does not exist, or is not held")


class JobUnknown(ItemNotFound):
    """There is no such kind of job."""

    def __init__(self, job: str) -> None:
        super().__init__(f"job {listed([job])} does not exist")


def _held_id(text: Any) -> Any:
    if isinstance(text, str) and not (text.isascii() and text.isdecimal() and len(text) <= _ID_DIGITS):
        raise JobNotHeld(text)
    return int(text)


class JobPath(Model):
    job_id: Annotated[int, BeforeValidator(_held_id)]
    """The job, as listed."""


class CountRow(Model):
    job: str
    status: str
    """`todo`: the jobs wait until they are due or a worker is free. `doing`: they run. `failed`: they are held."""
    count: int
    oldest_s: float
    """Seconds since the oldest of these jobs was due, or 0 if none is due yet."""


class CountsReply(Model):
    """The number of jobs of each kind in each status."""

    jobs: list[CountRow]


class ScheduleRow(Model):
    job: str
    schedule: str
    """The times at which the job runs, in cron's format and UTC. A sixth field contains seconds."""
    last_at: str | None = None
    """The last time for which it was enqueued; absent if it never was."""
    last: Literal["waiting", "running", "held", "succeeded"] | None = None
    """The state of that job."""
    next_at: str


class SchedulesReply(Model):
    """The schedules, and the workers that run them."""

    workers: int
    """How many workers run. Without one, no job runs."""
    schedules: list[ScheduleRow]


class HeldFilter(Model):
    job: str | None = None
    """List only jobs of this kind."""
    error: str | None = Field(default=None, max_length=100)
    """List only jobs that failed with this `error_type`."""
    app: str | None = None
    """List only jobs of this app."""


class HeldQuery(SortedQuery[QueryInt], HeldFilter):
    group: str | None = Field(default=None, max_length=100)
    """List only jobs of this group of failures."""


class UsedConfig(Model):
    app: str
    kind: str
    name: str


class HeldRow(Model):
    job_id: int
    """The log line of the last attempt has the event `job.held` and this `job_id`."""
    job: str
    app: str | None = None
    """Absent: the job concerns all apps."""
    message: dict[str, Any]
    """Fields with texts of users are `{"private": true}` unless the operator has the role `admin`."""
    attempts: int
    held_at: str
    error_type: str
    """Why the last attempt failed. `internal`: a bug, whose text is in the log. `timeout`: the attempt took too
    long. `worker_died`: the workers died while they ran the job. `unknown`: an older version has not stored it."""
    error: str | None = None
    group: str
    """The group of all failures of this kind of job for the same reason."""
    process: str | None = None
    """The process that made the last attempt."""
    configs: list[UsedConfig]
    """The configs that the last attempt has read, the newest at the end."""
    user_id: str | None = None
    """The user whom the job concerns."""
    order_id: str | None = None
    """The payment or subscription of the user that the job concerns."""
    webhook_id: str | None = None
    """The webhook that the job processes."""


class HeldReply(Page[int]):
    """A page of the held jobs."""

    jobs: list[HeldRow]


class GroupRow(Model):
    group: str
    job: str
    error_type: str
    error: str | None = None
    """The message of the newest of these failures."""
    count: int
    first_at: str
    last_at: str


class GroupsReply(Model):
    """The groups of held jobs."""

    groups: list[GroupRow]
    """The largest first, at most 100."""


class HeldGroupBody(Model):
    group: str = Field(min_length=1, max_length=100)
    """A group of failures, as listed."""


class ChangedJobs(Model):
    """How many jobs were changed, and how many of the group remain."""

    changed: int
    remaining: int
    """How many jobs of the group are still held. Call again to change those."""


async def count_jobs(call: Call) -> CountsReply:
    """Count the jobs by kind and status."""
    async with call.services.database.connection() as conn:
        counts = await jobs.job_counts(conn)
    return CountsReply(
        jobs=[
            CountRow(job=one.task, status=one.status, count=one.count, oldest_s=round(one.oldest_s, 1))
            for one in counts
        ]
    )


async def list_schedules(call: Call) -> SchedulesReply:
    """List the jobs that run at fixed times, with last and next run."""
    async with call.services.database.connection() as conn:
        found = await schedules.all_schedules(conn)
        workers = await schedules.workers(conn)
    return SchedulesReply(workers=workers, schedules=[_schedule_row(one) for one in found])


_STATES: Mapping[str | None, Literal["waiting", "running", "held", "succeeded"]] = {
    "todo": "waiting",
    "doing": "running",
    "failed": "held",
    None: "succeeded",
}


def _schedule_row(one: Schedule) -> ScheduleRow:
    following: datetime = croniter(one.schedule, datetime.now(UTC)).get_next(datetime)
    return ScheduleRow(
        job=one.task,
        schedule=one.schedule,
        last_at=None if one.last_at is None else rfc3339(one.last_at),
        last=None if one.last_at is None else _STATES[one.last],
        next_at=rfc3339(following),
    )


async def list_held(call: Call, query: Query[HeldQuery]) -> HeldReply:
    """List held jobs.

    These are jobs that failed in all their attempts. The newest comes first, unless `sort` says otherwise.
    """
    which = Filter(query.job, query.app, query.error, query.group)
    async with call.services.database.connection() as conn:
        found = await held_jobs.page(
            conn, which, oldest_first=query.oldest_first, before=query.before, size=query.size + 1
        )
    if not found and query.job is not None and query.job not in jobs.tasks():
        raise JobUnknown(query.job)
    held, further = page_of(found, query.size, lambda one: one.job_id)
    return HeldReply(next=further, jobs=[_held_row(call, one) for one in held])


async def list_groups(call: Call, query: Query[HeldFilter]) -> GroupsReply:
    """List the groups of held jobs.

    A group has the jobs of one kind that failed for the same reason.

    Ids and numbers in messages do not distinguish reasons.
    """
    async with call.services.database.connection() as conn:
        found = await held_jobs.groups(conn, Filter(query.job, query.app, query.error))
    return GroupsReply(groups=[_group_row(one) for one in found])


def _group_row(one: HeldGroup) -> GroupRow:
    return GroupRow(
        group=one.group,
        job=one.task,
        error_type=one.error_type,
        error=one.error,
        count=one.count,
        first_at=rfc3339(one.first_at),
        last_at=rfc3339(one.last_at),
    )


def _held_row(call: Call, one: HeldJob) -> HeldRow:
    return HeldRow(
        job_id=one.job_id,
        job=one.task,
        app=one.message.get("app_id"),
        message=_readable(call, one),
        attempts=one.attempts,
        held_at=rfc3339(one.held_at),
        error_type=one.error_type,
        error=one.error,
        group=one.error_group,
        process=one.process or None,
        configs=[UsedConfig(app=app, kind=kind, name=name) for app, kind, name in one.configs],
        user_id=one.uid,
        order_id=one.order_id,
        webhook_id=one.message.get("webhook_id"),
    )


def _readable(call: Call, held: HeldJob) -> dict[str, Any]:
    """Return the message of a job as the operator may read it. Who may not read conversations reads no prompts."""
    operator = call.caller.operator
    if operator is None or operator.role.includes(Role.ADMIN):
        return held.message
    private = held.message.keys() & jobs.private_fields(held.task)
    return held.message | dict.fromkeys(private, _PRIVATE)


async def retry_job(call: Call, transaction: Transaction, path: Path[JobPath]) -> Empty:
    """Run a held job again.

    Its attempts are counted from zero again. The header `X-Parley-Reason` is required.
    """
    origin = origin_with_reason(call)
    async with transaction.begin() as conn:
        if not await held_jobs.retry(conn, path.job_id, origin=origin):
            raise JobNotHeld(str(path.job_id))
        return transaction.answer(Empty())


async def drop_job(call: Call, path: Path[JobPath]) -> Empty:
    """Delete a held job.

    The header `X-Parley-Reason` is required.
    """
    origin = origin_with_reason(call)
    async with call.services.database.transaction() as conn:
        if not await held_jobs.drop(conn, path.job_id, origin=origin):
            raise JobNotHeld(str(path.job_id))
    return Empty()


async def retry_group(call: Call, transaction: Transaction, body: Body[HeldGroupBody]) -> ChangedJobs:
    """Run the held jobs of a group again.

    At most 1000 jobs are changed at once, each of them once, even if several operators do this at the same time.
    The header `X-Parley-Reason` is required.
    """
    return await _change_group(call, transaction, body.group, "retry")


async def drop_group(call: Call, transaction: Transaction, body: Body[HeldGroupBody]) -> ChangedJobs:
    """Delete the held jobs of a group.

    At most 1000 jobs are deleted at once. The header `X-Parley-Reason` is required.
    """
    return await _change_group(call, transaction, body.group, "drop")


async def _change_group(call: Call, transaction: Transaction, group: str, action: ManyAction) -> ChangedJobs:
    origin = origin_with_reason(call)
    async with transaction.begin() as conn:
        done = await held_jobs.change_group(conn, group, action=action, origin=origin)
        return transaction.answer(ChangedJobs(changed=done.changed, remaining=done.remaining))


_HELD = "/admin/api/jobs/held"

JOB_ROUTES = [
    Endpoint("GET", "/admin/api/jobs", count_jobs, FOR_VIEWERS),
    Endpoint("GET", "/admin/api/jobs/schedules", list_schedules, FOR_VIEWERS),
    Endpoint("GET", _HELD, list_held, FOR_VIEWERS, errors=(JobUnknown,)),
    Endpoint("GET", f"{_HELD}/groups", list_groups, FOR_VIEWERS),
    Endpoint("POST", f"{_HELD}/retry", retry_group, FOR_EDITORS),
    Endpoint("POST", f"{_HELD}/drop", drop_group, FOR_EDITORS),
    Endpoint("POST", f"{_HELD}/{{job_id}}/retry", retry_job, FOR_EDITORS, errors=(JobNotHeld,)),
    Endpoint("DELETE", f"{_HELD}/{{job_id}}", drop_job, FOR_EDITORS, errors=(JobNotHeld,)),
]
