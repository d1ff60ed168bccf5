"""Of jobs with the same key, one waits."""

import pytest

from app.services import Services
from storage.jobs import enqueue
from tests.app.notes import Note, Notes, add, jobs_are, worker
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
