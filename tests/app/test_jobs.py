"""Jobs run once their transaction has committed. They are retried, then held for the operator."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

import pytest
from structlog.testing import capture_logs

from app.schedules import Schedule
from app.services import Services
from app.worker import JOBS, JobRow, run_jobs
from storage.jobs import Job, enqueue
from streams.tasks import background
from tests.servers import ADMIN_TOKEN, Server
from tests.waiting import until

WITHIN_S = 20


@pytest.fixture
def server(shared_server: Server) -> Server:
    return shared_server


@pytest.fixture
def services(server: Server) -> Services:
    return server.services


class Note(Job):
    task: ClassVar[str] = "note"
    attempts: ClassVar[int] = 3
    retry_after_s: ClassVar[float] = 0.01
    text: str


NEW_YEAR = Schedule("0 0 1 1 *", Note(text="new year"))
"""A worker without any schedule does not watch its own tasks."""


class Notes:
    """Handles `Note`: records the texts, and raises an error in the next `failures` calls."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.failures = 0
        self._changed = asyncio.Event()

    async def handle(self, _: Services, job: Note) -> None:
        self.texts.append(job.text)
        self._changed.set()
        if self.failures:
            self.failures -= 1
            raise RuntimeError("a bug")

    async def reach(self, count: int) -> None:
        """Wait until the handler has run `count` times."""
        async with asyncio.timeout(WITHIN_S):
            while len(self.texts) < count:
                self._changed.clear()
                await self._changed.wait()


@pytest.fixture
def notes() -> Notes:
    return Notes()


@asynccontextmanager
async def worker(services: Services, notes: Notes, *, poll_s: float = 0.05, **options: Any) -> AsyncIterator[None]:
    async with background(
        run_jobs(services, jobs=[JobRow(Note, notes.handle)], schedules=[NEW_YEAR], poll_s=poll_s, **options)
    ):
        yield


async def add(services: Services, text: str, **options: Any) -> int | None:
    async with services.database.transaction() as conn:
        return await enqueue(conn, Note(text=text), **options)


async def add_and_roll_back(services: Services, text: str) -> None:
    async with services.database.transaction() as conn:
        await enqueue(conn, Note(text=text))
        raise RuntimeError


async def admin(server: Server, method: str, path: str, **more: str) -> tuple[int, Any]:
    headers = {"Authorization": f"Bearer {ADMIN_TOKEN}", **more}
    async with server.http.request(method, f"{server.url}/admin/api{path}", headers=headers) as response:
        return response.status, await response.json()


async def test_job_runs_once_its_transaction_has_committed(services: Services, notes: Notes) -> None:
    async with worker(services, notes):
        with pytest.raises(RuntimeError):
            await add_and_roll_back(services, "rolled back")
        async with services.database.transaction() as conn:
            await enqueue(conn, Note(text="kept"))
        await notes.reach(1)
        await add(services, "last")
        await notes.reach(2)
    assert notes.texts == ["kept", "last"]


async def test_waiting_job_with_the_same_key_is_stored_once(services: Services, notes: Notes) -> None:
    async with services.database.transaction() as conn:
        assert await enqueue(conn, Note(text="first"), key="k") is not None
        assert await enqueue(conn, Note(text="second"), key="k") is None
        assert await enqueue(conn, Note(text="other"), key="l") is not None
    async with worker(services, notes):
        await notes.reach(2)
        await until(lambda: jobs_are(services, 0))
        assert await add(services, "third", key="k") is not None
        await notes.reach(3)
    assert notes.texts == ["first", "other", "third"]


async def test_job_does_not_run_before_its_time(services: Services, notes: Notes) -> None:
    await add(services, "later", run_at=datetime.now(UTC) + timedelta(hours=1))
    async with worker(services, notes):
        await add(services, "at once")
        await notes.reach(1)
        await until(lambda: jobs_are(services, 1))
    assert notes.texts == ["at once"]


async def test_failed_job_is_retried_then_held_until_the_operator_retries_or_drops_it(
    services: Services, server: Server, notes: Notes
) -> None:
    notes.failures = 3
    first = await add(services, "one")
    async with worker(services, notes):
        await notes.reach(3)
        await until(lambda: held_are(server, [first]))
        _, found = await admin(server, "GET", "/jobs/held?job=note")
        job = found["jobs"][0]
        assert (job["job"], job["message"], job["attempts"]) == ("note", {"text": "one"}, 3)
        assert (await admin(server, "GET", "/jobs/held?job=other"))[1] == {"jobs": []}
        _, counts = await admin(server, "GET", "/jobs")
        assert [(row["job"], row["status"], row["count"]) for row in counts["jobs"]] == [("note", "failed", 1)]

        for _ in range(2):
            key = {"Idempotency-Key": "retry-1"}
            assert await admin(server, "POST", f"/jobs/held/{first}/retry", **key) == (200, {})
        await notes.reach(4)
        await until(lambda: held_are(server, []))

        notes.failures = 3
        second = await add(services, "two")
        await until(lambda: held_are(server, [second]))
        assert await admin(server, "DELETE", f"/jobs/held/{second}") == (200, {})
    assert await held_ids(server) == []
    for path in (f"/jobs/held/{second}", "/jobs/held/0", "/jobs/held/x", f"/jobs/held/{'9' * 30}"):
        status, answer = await admin(server, "DELETE", path)
        assert (status, answer["error"]["error_type"]) == (404, "item_not_found"), path


async def test_job_whose_worker_died_runs_again_and_that_counts_as_an_attempt(
    services: Services, server: Server, notes: Notes
) -> None:
    job_id = await add(services, "survivor")
    async with services.database.connection() as conn:
        await assign_to_dead_worker(conn, job_id)
    async with worker(services, notes, stalled_s=1):
        await notes.reach(1)
        await until(lambda: jobs_are(services, 0))

    killer = await add(services, "killer")
    async with services.database.connection() as conn:
        await conn.execute("update procrastinate_jobs set attempts = 2 where id = $1", killer)
        await assign_to_dead_worker(conn, killer)
    async with worker(services, notes, stalled_s=1):
        await until(lambda: held_are(server, [killer]))
    assert notes.texts == ["survivor"]


async def test_worker_continues_after_the_database_has_closed_its_connections(
    services: Services, notes: Notes
) -> None:
    async with worker(services, notes):
        await add(services, "before")
        await notes.reach(1)
        await until(lambda: jobs_are(services, 0))  # Otherwise it may run again.
        async with services.database.connection() as conn:
            await conn.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity "
                "where datname = current_database() and pid <> pg_backend_pid() and query like '%procrastinate%'"
            )
        await add(services, "after")
        await notes.reach(2)
    assert notes.texts == ["before", "after"]


async def test_worker_continues_after_the_database_was_unavailable(
    services: Services, notes: Notes, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    url = services.settings.database_url
    [folder] = parse_qs(urlsplit(url).query)["host"]
    linked = tmp_path / "postgres"
    linked.symlink_to(folder)
    settings = replace(
        services.settings, database_url=f"{url.replace(folder, str(linked))}&application_name=worker"
    )
    async with worker(replace(services, settings=settings), notes, poll_s=60):
        await add(services, "before")
        await notes.reach(1)
        await until(lambda: jobs_are(services, 0))
        linked.unlink()
        with capture_logs() as logged:
            async with services.database.connection() as conn:
                await conn.execute(
                    "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'worker'"
                )
            # The library stops without an error if one of its own tasks is the first to notice.
            await until(
                lambda: (
                    "side_task_failed" in {getattr(each, "action", "") for each in caplog.records}
                    or "worker.database_unavailable" in {each["event"] for each in logged}
                )
            )
        linked.symlink_to(folder)
        await add(services, "after")
        await notes.reach(2)
    assert notes.texts == ["before", "after"]


async def test_worker_ends_whenever_it_is_cancelled(services: Services) -> None:
    """Also while it connects, when the pool of its connections may lose the cancellation."""
    for after_ms in (*range(0, 60, 2), *range(30)):
        running = background(run_jobs(services, schedules=()))
        running.start()
        await asyncio.sleep(after_ms / 1000)
        async with asyncio.timeout(10):
            await running.stop()


async def test_schedule_enqueues_one_job_per_time_with_two_workers(services: Services) -> None:
    ticks: list[str] = []
    ticked = asyncio.Event()

    async def tick(_: Services, job: Note) -> None:
        ticks.append(job.text)
        if len(ticks) >= 3:
            ticked.set()

    jobs, schedules = [JobRow(Note, tick)], [Schedule("* * * * * *", Note(text="tick"))]
    async with (
        background(run_jobs(services, jobs=jobs, schedules=schedules, poll_s=0.05)),
        background(run_jobs(services, jobs=jobs, schedules=schedules, poll_s=0.05)),
        asyncio.timeout(WITHIN_S),
    ):
        await ticked.wait()
    async with services.database.connection() as conn:
        times = await conn.fetch("select defer_timestamp from procrastinate_periodic_defers")
        ran = await conn.fetchval("select count(*) from procrastinate_events where type = 'deferred'")
    assert len(ticks) >= 3
    assert ran <= 1  # Finished jobs are deleted together with their events.
    assert len({row["defer_timestamp"] for row in times}) == len(times)


def test_every_kind_of_job_has_one_handler():
    kinds = [kind for kind in Job.__subclasses__() if kind.__module__.startswith("storage.")]
    assert Counter(row.message for row in JOBS) == Counter(kinds)
    assert len({kind.task for kind in kinds}) == len(kinds)


async def jobs_are(services: Services, count: int) -> bool:
    async with services.database.connection() as conn:
        return await conn.fetchval("select count(*) from procrastinate_jobs") == count


async def held_are(server: Server, job_ids: list[int | None]) -> bool:
    return await held_ids(server) == job_ids


async def held_ids(server: Server) -> list[int]:
    status, answer = await admin(server, "GET", "/jobs/held")
    assert status == 200, answer
    return [job["job_id"] for job in answer["jobs"]]


async def assign_to_dead_worker(conn: Any, job_id: int | None) -> None:
    """Put the job into the state in which a worker that was killed an hour ago has left it."""
    await conn.execute(
        """
        with dead as (
            insert into procrastinate_workers (last_heartbeat) values (now() - interval '1 hour') returning id
        )
        update procrastinate_jobs set status = 'doing', worker_id = (select id from dead) where id = $1
        """,
        job_id,
    )
