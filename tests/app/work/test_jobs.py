"""Jobs run once their transaction has committed. They are retried, then held for the operator."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import ClassVar
from urllib.parse import parse_qs, urlsplit

import pytest
from structlog.testing import capture_logs

from app.services import Services
from app.work.jobs import JOBS, JobRow
from app.work.worker import run_jobs
from storage.jobs.jobs import Job, enqueue
from streams.tasks import background
from tests.app.notes import (
    Note,
    Notes,
    add,
    admin,
    held_are,
    held_ids,
    in_an_hour,
    jobs_are,
    worker,
)
from tests.running.servers import Server
from tests.waiting import until


@pytest.fixture
def server(shared_server: Server) -> Server:
    return shared_server


@pytest.fixture
def services(server: Server) -> Services:
    return server.services


@pytest.fixture
def notes() -> Notes:
    return Notes()


async def add_and_roll_back(services: Services, text: str) -> None:
    async with services.database.transaction() as conn:
        await enqueue(conn, Note(text=text))
        raise RuntimeError


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


async def test_job_does_not_run_before_its_time(services: Services, notes: Notes) -> None:
    await add(services, "later", run_at=in_an_hour())
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
        assert (await admin(server, "GET", "/jobs/held?job=export_user"))[1] == {"jobs": []}
        status, answer = await admin(server, "GET", "/jobs/held?job=nope")
        assert (status, answer["error"]["message"]) == (404, "item_not_found: job nope does not exist")
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


class Errand(Job):
    task: ClassVar[str] = "errand"
    attempts: ClassVar[int] = 8
    retry_after_s: ClassVar[float] = 100


async def test_the_wait_doubles_with_each_failed_attempt_up_to_an_hour(services: Services) -> None:
    async def fail(*_: object) -> None:
        raise RuntimeError

    async def wait_after(attempts: int) -> float | None:
        """Return the seconds until the next attempt, and make it due now. `None` while an attempt is to come."""
        async with services.database.connection() as conn:
            wait_s: float | None = await conn.fetchval(
                "select extract(epoch from scheduled_at - now())::float8 from procrastinate_jobs"
                " where task_name = 'errand' and status = 'todo' and attempts = $1",
                attempts,
            )
            if wait_s is not None:
                await conn.execute("update procrastinate_jobs set scheduled_at = now() where task_name = 'errand'")
            return wait_s

    async with services.database.transaction() as conn:
        await enqueue(conn, Errand())
    waits = []
    async with background(run_jobs(services, jobs=[JobRow(Errand, fail)], scheduled=False, poll_s=0.05)):
        for attempts in range(1, 8):
            await until(lambda attempts=attempts: _collected(waits, wait_after, attempts))
    assert waits == [pytest.approx(min(100 * 2**number, 3600), abs=60) for number in range(7)]


async def _collected(
    waits: list[float], wait_after: Callable[[int], Awaitable[float | None]], attempts: int
) -> bool:
    if (wait_s := await wait_after(attempts)) is None:
        return False
    waits.append(wait_s)
    return True


async def test_job_whose_handler_cancels_itself_is_held_after_its_last_attempt(
    services: Services, server: Server, notes: Notes
) -> None:
    notes.failures, notes.error = 3, asyncio.CancelledError()
    job_id = await add(services, "one")
    async with worker(services, notes):
        await until(lambda: held_are(server, [job_id]))
        _, counts = await admin(server, "GET", "/jobs")
        assert [(row["status"], row["count"]) for row in counts["jobs"]] == [("failed", 1)]
        assert (await admin(server, "POST", f"/jobs/held/{job_id}/retry"))[0] == 200
        await until(lambda: jobs_are(services, 0))
    assert notes.texts == ["one"] * 4


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
    url = services.settings.direct_url
    [folder] = parse_qs(urlsplit(url).query)["host"]
    linked = tmp_path / "postgres"
    linked.symlink_to(folder)
    settings = replace(
        services.settings,
        database_url=f"{url.replace(folder, str(linked))}&application_name=worker",
        database_direct_url=None,  # With a pooler too, the only way to the database is the one that breaks.
    )
    # It finds by polling what is stored after its first look at the queue and before it listens.
    async with worker(replace(services, settings=settings), notes, poll_s=2):
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
                    "side_task_failed" in {getattr(record, "action", "") for record in caplog.records}
                    or "worker.database_unavailable" in {line["event"] for line in logged}
                )
            )
        errors = [line["error"] for line in logged if line["event"] == "worker.database_unavailable"]
        assert all(error and "\n" not in error for error in errors)
        linked.symlink_to(folder)
        await add(services, "after")
        await notes.reach(2)
    assert notes.texts == ["before", "after"]


async def test_worker_ends_whenever_it_is_cancelled(services: Services) -> None:
    """Also while it connects, when the pool of its connections may lose the cancellation."""
    for after_ms in (*range(0, 60, 2), *range(30)):
        running = background(run_jobs(services, scheduled=False))
        running.start()
        await asyncio.sleep(after_ms / 1000)
        async with asyncio.timeout(10):
            await running.stop()


class Tick(Job):
    task: ClassVar[str] = "tick"
    timestamp: int = 0
    """The time for which the job was enqueued, which the library adds."""


async def test_schedule_runs_one_job_per_time_with_two_workers(services: Services) -> None:
    times: list[int] = []

    async def tick(_: Services, job: Tick) -> None:
        times.append(job.timestamp)

    jobs = [JobRow(Tick, tick, schedule="* * * * * *")]
    async with (
        background(run_jobs(services, jobs=jobs, poll_s=0.05)),
        background(run_jobs(services, jobs=jobs, poll_s=0.05)),
    ):
        await until(lambda: len(set(times)) >= 3)
    assert Counter(times) == Counter(set(times))


class Dropped(Job):
    """A job that only workers of the version before store."""

    task: ClassVar[str] = "remove_expired_audit"


async def test_job_of_the_version_before_is_deleted_and_not_held(services: Services) -> None:
    async with services.database.transaction() as conn:
        await enqueue(conn, Dropped())
    with capture_logs() as logged:
        async with background(run_jobs(services, scheduled=False, poll_s=0.05)):
            await until(lambda: jobs_are(services, 0))
    assert logged == []


def test_every_kind_of_job_has_one_handler():
    kinds = [kind for kind in Job.__subclasses__() if kind.__module__.startswith("storage.")]
    assert Counter(row.message for row in JOBS) == Counter(kinds)
    assert len({kind.task for kind in kinds}) == len(kinds)
