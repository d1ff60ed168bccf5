"""Admin API of jobs: counts, and listing, retrying and dropping of held jobs."""

from typing import Annotated, Any

from pydantic import BeforeValidator

from app.admin.area import FOR_EDITORS, FOR_VIEWERS
from app.http.paging import Page, PageQuery, page_of
from app.http.rows.endpoint import Call, Endpoint
from app.http.rows.inputs import Path, Query
from app.http.rows.replies import Empty
from app.http.rows.transactions import Transaction
from storage.jobs import jobs
from storage.jobs.jobs import HeldJob
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
    jobs: list[CountRow]


class HeldQuery(PageQuery[QueryInt]):
    job: str | None = None
    """List only jobs of this kind."""


class HeldRow(Model):
    job_id: int
    job: str
    message: dict[str, Any]
    """Fields with texts of users are `{"private": true}` unless the operator has the role `admin`."""
    attempts: int
    held_at: str


class HeldReply(Page[int]):
    jobs: list[HeldRow]


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


async def list_held(call: Call, query: Query[HeldQuery]) -> HeldReply:
    """List held jobs.

    These are jobs that failed in all their attempts. The newest comes first.
    """
    async with call.services.database.connection() as conn:
        found = await jobs.held_jobs(conn, task=query.job, before_id=query.before, size=query.size + 1)
    if not found and query.job is not None and query.job not in jobs.tasks():
        raise JobUnknown(query.job)
    held, further = page_of(found, query.size, lambda one: one.job_id)
    return HeldReply(
        next=further,
        jobs=[
            HeldRow(
                job_id=one.job_id,
                job=one.task,
                message=_readable(call, one),
                attempts=one.attempts,
                held_at=rfc3339(one.held_at),
            )
            for one in held
        ],
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

    Its attempts are counted from zero again.
    """
    async with transaction.begin() as conn:
        if not await jobs.retry_held(conn, path.job_id, origin=call.origin):
            raise JobNotHeld(str(path.job_id))
        return transaction.answer(Empty())


async def drop_job(call: Call, path: Path[JobPath]) -> Empty:
    """Delete a held job."""
    async with call.services.database.transaction() as conn:
        if not await jobs.drop_held(conn, path.job_id, origin=call.origin):
            raise JobNotHeld(str(path.job_id))
    return Empty()


JOB_ROUTES = [
    Endpoint("GET", "/admin/api/jobs", count_jobs, FOR_VIEWERS),
    Endpoint("GET", "/admin/api/jobs/held", list_held, FOR_VIEWERS, errors=(JobUnknown,)),
    Endpoint("POST", "/admin/api/jobs/held/{job_id}/retry", retry_job, FOR_EDITORS, errors=(JobNotHeld,)),
    Endpoint("DELETE", "/admin/api/jobs/held/{job_id}", drop_job, FOR_EDITORS, errors=(JobNotHeld,)),
]
