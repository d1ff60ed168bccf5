"""Jobs whose worker was stopped or has died run again."""

import pytest

from app.services import Services
from tests.app.notes import Notes, add, assign_to_dead_worker, held_are, jobs_are, worker
from tests.servers import Server
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
