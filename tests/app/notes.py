"""A kind of job for tests, its handler, and a worker that runs it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any, ClassVar

from app.services import Services
from app.work.jobs import JobRow
from app.work.worker import run_jobs
from storage.jobs.jobs import Job, enqueue
from streams.tasks import background
from tests.calendar.clock import utc_now
from tests.running.servers import ADMIN_TOKEN, Server

WITHIN_S = 20
ALIVE, DEAD = "infinity", "-infinity"
"""Heartbeats of workers."""


class Note(Job):
    task: ClassVar[str] = "note"
    attempts: ClassVar[int] = 3
    retry_after_s: ClassVar[float] = 0.01
    text: str = "new year"


NEW_YEAR = "0 0 1 1 *"
"""A worker without any schedule does not watch its own tasks."""


class Notes:
    """Handles `Note`: records the texts, waits for `released`, and raises `error` in the next `failures` calls."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.failures = 0
        self.error: BaseException = RuntimeError("a bug")
        self.released = asyncio.Event()
        self.released.set()
        self._changed = asyncio.Event()

    async def handle(self, _: Services, job: Note) -> None:
        self.texts.append(job.text)
        self._changed.set()
        await self.released.wait()
        if self.failures:
            self.failures -= 1
            raise self.error

    async def reach(self, count: int) -> None:
        """Wait until the handler has run `count` times."""
        async with asyncio.timeout(WITHIN_S):
            while len(self.texts) < count:
                self._changed.clear()
                await self._changed.wait()


@asynccontextmanager
async def worker(services: Services, notes: Notes, *, poll_s: float = 0.05, **options: Any) -> AsyncIterator[None]:
    async with background(
        run_jobs(services, jobs=[JobRow(Note, notes.handle, schedule=NEW_YEAR)], poll_s=poll_s, **options)
    ):
        yield


async def add(services: Services, text: str, **options: Any) -> int | None:
    async with services.database.transaction() as conn:
        return await enqueue(conn, Note(text=text), **options)


def in_an_hour() -> datetime:
    return utc_now() + timedelta(hours=1)


async def admin(server: Server, method: str, path: str, **more: str) -> tuple[int, Any]:
    headers = {"Authorization": f"Bearer {ADMIN_TOKEN}", "X-Parley-Reason": "a test", **more}
    async with server.http.request(method, f"{server.url}/admin/api{path}", headers=headers) as response:
        return response.status, await response.json()


async def jobs_are(services: Services, count: int) -> bool:
    async with services.database.connection() as conn:
        return await conn.fetchval("select count(*) from procrastinate_jobs") == count


async def held_are(server: Server, job_ids: list[int | None]) -> bool:
    return await held_ids(server) == job_ids


async def held_ids(server: Server) -> list[int]:
    status, answer = await admin(server, "GET", "/jobs/held")
    assert status == 200, answer
    return [job["job_id"] for job in answer["jobs"]]


async def assign_to_worker(conn: Any, *job_ids: int | None, heartbeat: str) -> int:
    """Put jobs into the state in which a worker with this last heartbeat runs them. Return the worker."""
    worker_id: int = await conn.fetchval(
        "insert into procrastinate_workers (last_heartbeat) values ($1::text::timestamptz) returning id", heartbeat
    )
    await conn.execute(
        "update procrastinate_jobs set status = 'doing', worker_id = $1 where id = any($2)", worker_id, job_ids
    )
    return worker_id
