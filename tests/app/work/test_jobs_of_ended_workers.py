"""Jobs whose worker was stopped or has died run again."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from structlog.testing import capture_logs

from app.services import Services
from storage.jobs import stalled_jobs
from storage.jobs.stalled_jobs import MAX_DEATHS
from tests.app.notes import (
    ALIVE,
    DEAD,
    Note,
    Notes,
    add,
    admin,
    assign_to_worker,
    held_are,
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


async def let_die(services: Services, job_id: int | None, *, times: int) -> None:
    """Let the workers of a job die, as often as given. The last death is not noticed yet."""
    async with services.database.connection() as conn:
        for number in range(times):
            await assign_to_worker(conn, job_id, heartbeat=DEAD)
            if number < times - 1:
                [stalled] = await stalled_jobs.find(conn, stalled_s=1)
                recovered = await stalled_jobs.recover(conn, stalled, stalled_s=1)
                assert recovered is not None
                assert recovered.status == "todo"
                within_a_minute = (
                    "select scheduled_at < now() + interval '31 s' from procrastinate_jobs where id = $1"
                )
                assert await conn.fetchval(within_a_minute, job_id)


async def due_now(services: Services) -> None:
    async with services.database.connection() as conn:
        await conn.execute("update procrastinate_jobs set scheduled_at = now() where status = 'todo'")


async def test_a_job_whose_workers_have_died_runs_again_by_itself(services: Services, notes: Notes) -> None:
    job_id = await add(services, "survivor")
    await let_die(services, job_id, times=2 * Note.attempts)
    async with worker(services, notes, stalled_s=1):

        async def runs() -> bool:
            await due_now(services)
            return bool(notes.texts)

        await until(runs)
        await until(lambda: jobs_are(services, 0))
    assert notes.texts == ["survivor"]


async def test_a_job_that_fails_after_its_workers_have_died_has_all_its_attempts(
    services: Services, server: Server, notes: Notes
) -> None:
    job_id = await add(services, "unlucky")
    await let_die(services, job_id, times=Note.attempts)
    notes.failures = Note.attempts
    async with worker(services, notes, stalled_s=1):

        async def held() -> bool:
            await due_now(services)
            return await held_are(server, [job_id])

        await until(held)
    assert len(notes.texts) == Note.attempts
    assert (await admin(server, "POST", f"/jobs/held/{job_id}/retry"))[0] == 200
    async with services.database.connection() as conn:
        counted = "select attempts = 0 and priority = 0 from procrastinate_jobs where id = $1"
        assert await conn.fetchval(counted, job_id)


async def test_a_job_that_kills_its_worker_again_and_again_is_held(
    services: Services, server: Server, notes: Notes
) -> None:
    killer = await add(services, "killer")
    await let_die(services, killer, times=MAX_DEATHS)
    async with worker(services, notes, stalled_s=1):
        await until(lambda: held_are(server, [killer]))
    assert notes.texts == []


async def test_a_job_that_cannot_be_recovered_does_not_keep_others_from_it_and_is_tried_again(
    services: Services, notes: Notes
) -> None:
    refused, other = await add(services, "refused"), await add(services, "other")
    async with services.database.connection() as conn:
        await assign_to_worker(conn, refused, other, heartbeat=DEAD)
        async with worker(services, notes, stalled_s=1):
            async with refusing_to_change(conn, refused):
                await notes.reach(1)
            await notes.reach(2)
    assert notes.texts == ["other", "refused"]


@asynccontextmanager
async def refusing_to_change(
    conn: Any, job_id: int | None, *, event: str = "update of status"
) -> AsyncIterator[None]:
    """Let the database refuse to change a job."""
    await conn.execute(
        f"""
        create function refuse() returns trigger language plpgsql as $$ begin raise 'refused'; end $$;
        create trigger refuse before {event} on procrastinate_jobs for each row
        when (old.id = {job_id}) execute function refuse()
        """
    )
    try:
        yield
    finally:
        await conn.execute("drop function refuse cascade")


async def test_a_job_that_another_worker_has_taken_meanwhile_is_left_to_it(
    services: Services, notes: Notes
) -> None:
    taken, other = await add(services, "taken"), await add(services, "other")
    async with services.database.connection() as conn:
        worker_id = await assign_to_worker(conn, taken, other, heartbeat=ALIVE)
        async with worker(services, notes, stalled_s=1):
            await until(lambda: conn.fetchval("select count(*) = 2 from procrastinate_workers"))
            async with services.database.transaction() as locking:
                await locking.execute("select from procrastinate_jobs where id = $1 for update", taken)
                await conn.execute(
                    "update procrastinate_workers set last_heartbeat = $2::text::timestamptz where id = $1",
                    worker_id,
                    DEAD,
                )
                await until(lambda: conn.fetchval(_WAITS))
                new_owner = await assign_to_worker(locking, taken, heartbeat=ALIVE)
            await notes.reach(1)
        assert notes.texts == ["other"]
        owner = "select worker_id from procrastinate_jobs where id = $1 and status = 'doing'"
        assert await conn.fetchval(owner, taken) == new_owner


_WAITS = """
select exists (select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock')
"""


async def test_the_job_of_a_dead_worker_is_dropped_if_another_with_its_key_waits(
    services: Services, notes: Notes
) -> None:
    dead = await add(services, "dead", key="k")
    async with services.database.connection() as conn:
        await assign_to_worker(conn, dead, heartbeat=DEAD)
        assert await add(services, "waiting", key="k", run_at=in_an_hour()) is not None
        await assign_to_worker(conn, await add(services, "other"), heartbeat=DEAD)
    async with worker(services, notes, stalled_s=1):
        await notes.reach(1)
        await until(lambda: jobs_are(services, 1))
    assert notes.texts == ["other"]


async def test_an_interrupted_job_runs_again_even_if_that_was_its_last_attempt(
    services: Services, server: Server, notes: Notes
) -> None:
    job_id = await add(services, "long")
    async with services.database.connection() as conn:
        await conn.execute("update procrastinate_jobs set attempts = 2 where id = $1", job_id)
    notes.released.clear()
    async with worker(services, notes, stop_s=0):
        await notes.reach(1)
    notes.released.set()
    async with worker(services, notes):
        await notes.reach(2)
        await until(lambda: jobs_are(services, 0))


async def test_an_outcome_that_cannot_be_stored_is_stored_later(services: Services, notes: Notes) -> None:
    notes.released.clear()
    with capture_logs() as lines:
        async with worker(services, notes), services.database.connection() as conn:
            job_id = await add(services, "noted")
            await notes.reach(1)
            async with refusing_to_change(conn, job_id, event="delete"):
                notes.released.set()
                await until(lambda: [line for line in lines if line["event"] == "job.outcome_not_stored"])
            await until(lambda: jobs_are(services, 0))
    assert notes.texts == ["noted"]


async def test_the_outcome_of_a_late_attempt_does_not_end_that_of_the_worker_that_took_over(
    services: Services, notes: Notes
) -> None:
    notes.released.clear()
    with capture_logs() as lines:
        async with worker(services, notes), services.database.connection() as conn:
            job_id = await add(services, "late")
            await notes.reach(1)
            new_owner = await assign_to_worker(conn, job_id, heartbeat=ALIVE)
            notes.released.set()
            await until(lambda: [line for line in lines if line["event"] == "job.superseded"])
            owner = "select worker_id from procrastinate_jobs where id = $1 and status = 'doing'"
            assert await conn.fetchval(owner, job_id) == new_owner


async def test_a_worker_ends_although_an_outcome_cannot_be_stored(services: Services, notes: Notes) -> None:
    job_id = await add(services, "noted")
    with capture_logs() as lines:
        async with (
            services.database.connection() as conn,
            refusing_to_change(conn, job_id, event="delete"),
            asyncio.timeout(25),  # Running jobs have 30 s to finish.
            worker(services, notes),
        ):
            await until(lambda: [line for line in lines if line["event"] == "job.outcome_not_stored"])
    async with worker(services, notes, stalled_s=1):
        await until(lambda: jobs_are(services, 0))
