"""Admin API of jobs: counts, and listing, retrying and dropping of held jobs."""

from typing import Any

from aiohttp import web
from pydantic import Field

from app.http.caller import Access
from app.http.docs import Docs
from app.http.endpoint import Call, Endpoint, json_response
from storage import jobs
from streams.wire.codec import rfc3339
from streams.wire.errors import ItemNotFound
from streams.wire.model import Model, QueryInt

_LAST_ID = 10**18 - 1
_NO_JOB = Docs(errors=(ItemNotFound("job 17 is not held"),))


class CountRow(Model):
    job: str
    status: str
    """`todo`: the jobs wait until they are due or a worker is free. `doing`: they run. `failed`: they are held."""
    count: int
    oldest_s: float
    """Seconds since the oldest of these jobs was due, or 0 if none is due yet."""


class CountsReply(Model):
    jobs: list[CountRow]


class HeldQuery(Model):
    job: str | None = None
    """List only jobs of this kind."""
    before: QueryInt = Field(default=_LAST_ID, ge=1, le=_LAST_ID)
    """List only jobs with a smaller id. For the next page, give the last id of this one."""
    size: QueryInt = Field(default=50, ge=1, le=500)


class HeldRow(Model):
    job_id: int
    job: str
    message: dict[str, Any]
    attempts: int
    held_at: str


class HeldReply(Model):
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


async def list_held(call: Call, query: HeldQuery) -> HeldReply:
    """List held jobs.

    These are jobs that failed in all their attempts. The newest comes first.
    """
    async with call.services.database.connection() as conn:
        held = await jobs.held_jobs(conn, task=query.job, before_id=query.before, size=query.size)
    return HeldReply(
        jobs=[
            HeldRow(
                job_id=one.job_id,
                job=one.task,
                message=one.message,
                attempts=one.attempts,
                held_at=rfc3339(one.held_at),
            )
            for one in held
        ]
    )


async def retry_job(call: Call) -> web.Response:
    """Run a held job again.

    Its attempts are counted from zero again.
    """
    async with call.services.database.connection() as conn:
        if not await jobs.retry_held(conn, _job_id(call)):
            raise _not_held(call)
    return json_response({})


async def drop_job(call: Call) -> web.Response:
    """Delete a held job."""
    async with call.services.database.connection() as conn:
        if not await jobs.drop_held(conn, _job_id(call)):
            raise _not_held(call)
    return json_response({})


def _job_id(call: Call) -> int:
    text = call.path["job_id"]
    if not (text.isascii() and text.isdecimal() and len(text) <= 18):
        raise _not_held(call)
    return int(text)


def _not_held(call: Call) -> ItemNotFound:
    return ItemNotFound(f"job {call.path['job_id'][:32]} is not held")


JOB_ROUTES: list[Endpoint] = [
    Endpoint("GET", "/admin/api/jobs", count_jobs, access=Access.ADMIN, reply=CountsReply, tag="admin"),
    Endpoint(
        "GET", "/admin/api/jobs/held", list_held, access=Access.ADMIN, query=HeldQuery, reply=HeldReply, tag="admin"
    ),
    Endpoint(
        "POST", "/admin/api/jobs/held/{job_id}/retry", retry_job, access=Access.ADMIN, tag="admin", docs=_NO_JOB
    ),
    Endpoint("DELETE", "/admin/api/jobs/held/{job_id}", drop_job, access=Access.ADMIN, tag="admin", docs=_NO_JOB),
]
