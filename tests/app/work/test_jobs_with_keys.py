"""Of jobs with the same key, one waits."""

import pytest

from app.services import Services
from storage.jobs.jobs import enqueue
from tests.app.notes import Note, Notes, add, admin, held_are, in_an_hour, jobs_are, worker
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


async def test_a_failed_job_is_dropped_if_another_with_its_key_waits(services: Services, notes: Notes) -> None:
    notes.failures = 1
    notes.released.clear()
    async with worker(services, notes):
        await add(services, "first", key="k")
        await notes.reach(1)
        second = await add(services, "second", key="k", run_at=in_an_hour())
        notes.released.set()
        await until(lambda: jobs_are(services, 1))
        async with services.database.connection() as conn:
            await conn.execute("update procrastinate_jobs set scheduled_at = null where id = $1", second)
        await until(lambda: jobs_are(services, 0))
    assert notes.texts == ["first", "second"]


async def test_a_held_job_can_be_retried_while_another_with_its_key_waits(
    services: Services, server: Server, notes: Notes
) -> None:
    notes.failures = 3
    held = await add(services, "held", key="k")
    async with worker(services, notes):
        await until(lambda: held_are(server, [held]))
        assert await add(services, "waiting", key="k", run_at=in_an_hour()) is not None
        assert await admin(server, "POST", f"/jobs/held/{held}/retry") == (200, {})
        await until(lambda: jobs_are(services, 1))
    assert notes.texts == ["held"] * 4
