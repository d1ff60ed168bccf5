"""The clock of an app can be moved on a development server, and what depends on time follows it."""

import socket
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, ClassVar

import pytest

from app.http.callers.tokens import make_server_token
from app.services import Services, open_services
from app.settings import Settings
from app.work.jobs import JobRow
from app.work.worker import run_jobs
from storage.clock import open_clock
from storage.jobs.jobs import Job, enqueue
from storage.operators.audit import COMMAND
from streams.tasks import background
from tests.calendar.clock import utc_now
from tests.running.servers import SERVER_KEY, Server, running_server
from tests.waiting import until

DAY = timedelta(days=1)
NO_SESSION = "account.invalid_session"


@pytest.fixture
def server(shared_server: Server) -> Server:
    return shared_server


@pytest.fixture
def services(server: Server) -> Services:
    return server.services


class Reminder(Job):
    task: ClassVar[str] = "reminder"
    app_id: str


async def move(server: Server, to: datetime | None, app: str = "default") -> dict[str, Any]:
    body = {"app": app, "at": None if to is None else to.isoformat()}
    async with server.http.post(f"{server.url}/dev/clock", json=body) as response:
        assert response.status == 200, await response.text()
        return await response.json()


async def read(server: Server, app: str = "default") -> dict[str, Any]:
    async with server.http.get(f"{server.url}/dev/clock", params={"app": app}) as response:
        assert response.status == 200
        return await response.json()


async def error_of(server: Server, path: str, headers: dict[str, str]) -> str | None:
    async with server.http.get(server.url + path, headers=headers) as response:
        return None if response.status == 200 else (await response.json())["error"]["error_type"]


async def test_moved_clock_advances_and_is_that_of_one_app(server: Server) -> None:
    await server.services.configs.put("other", "apps", "default", {}, author="test", origin=COMMAND)
    future = utc_now() + 400 * DAY

    moved = await move(server, future)
    seen = await read(server)

    assert future <= datetime.fromisoformat(moved["now"]) < datetime.fromisoformat(seen["now"]) < future + DAY
    assert timedelta(seconds=seen["offset_s"]) > 399 * DAY
    assert (await read(server, "other"))["offset_s"] == 0
    assert (await move(server, None))["offset_s"] == 0


async def test_session_expires_by_the_clock_of_its_app_and_server_tokens_do_not(server: Server) -> None:
    uid, token = await server.login()
    session = {"X-Service-Session-Token": token}
    assert await error_of(server, "/bp/user/me", session) is None

    await move(server, utc_now() + 31 * DAY)
    assert await error_of(server, "/bp/user/me", session) == NO_SESSION
    server_token = make_server_token(kid="development", alg="HS256", key=SERVER_KEY, app_id="default")
    assert await error_of(server, f"/bp/server/user/{uid}", {"X-Service-Auth-Token": server_token}) is None
    _, later = await server.login()
    assert await error_of(server, "/bp/user/me", {"X-Service-Session-Token": later}) is None

    await move(server, None)
    assert await error_of(server, "/bp/user/me", session) is None


async def test_other_processes_use_the_moved_clock(server: Server, services: Services) -> None:
    async with open_clock(services.database, services.valkey, movable=True) as other:
        await move(server, utc_now() + DAY)
        await until(lambda: other.offset_s("default") > 80_000, within_s=2)
    async with open_clock(services.database, services.valkey, movable=True) as started_later:
        assert started_later.offset_s("default") > 80_000


async def test_job_of_an_app_runs_when_the_clock_reaches_its_time(server: Server, services: Services) -> None:
    ran: list[str] = []

    async def remind(_: Services, job: Reminder) -> None:
        ran.append(job.app_id)

    async with services.database.transaction() as conn:
        for app_id, days in (("default", 3), ("default", 1), ("other", 1)):
            await enqueue(conn, Reminder(app_id=app_id), run_at=utc_now() + days * DAY)
    async with background(run_jobs(services, jobs=[JobRow(Reminder, remind)], scheduled=False, poll_s=0.05)):
        await move(server, utc_now() + 2 * DAY)
        await until(lambda: ran == ["default"])
        await move(server, utc_now() + 2.5 * DAY)
        await enqueue_now(services, "other")
        await until(lambda: ran[1:])
        assert ran == ["default", "other"], "the second job is due on the third day"
        await move(server, None)
        await move(server, utc_now() + 2 * DAY)
        await enqueue_now(services, "other")
        await until(lambda: ran[2:])
        assert ran == ["default", "other", "other"], "the clock was moved back in between"
        await move(server, utc_now() + 4 * DAY)
        await until(lambda: ran == ["default", "other", "other", "default"])


async def enqueue_now(services: Services, app_id: str) -> None:
    async with services.database.transaction() as conn:
        await enqueue(conn, Reminder(app_id=app_id))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"app": "default"}, "invalid_parameter: at is required"),
        ({"app": "default", "at": "tomorrow"}, "invalid_parameter: at must be a time such as 2026-01-31T08:00:00Z"),
        (
            {"app": "default", "at": "2026-01-31"},
            "invalid_parameter: at must be a time such as 2026-01-31T08:00:00Z",
        ),
        ({"app": "default", "at": "0001-01-01T00:00:00Z"}, "invalid_parameter: at must be within 100 years of"),
        ({"app": "nobody", "at": None}, "app_not_found: app nobody does not exist"),
    ],
)
async def test_times_and_apps_that_do_not_exist_are_refused(server: Server, body: Any, message: str) -> None:
    async with server.http.post(f"{server.url}/dev/clock", json=body) as response:
        assert response.status == 400
        assert (await response.json())["error"]["message"].startswith(message)


class TestInProduction:
    @pytest.fixture
    def settings(self, settings: Settings) -> Settings:
        return replace(settings, env="production")

    @pytest.fixture
    async def services(self, settings: Settings) -> AsyncIterator[Services]:
        async with open_services(settings) as opened:
            yield opened

    @pytest.fixture
    async def server(self, services: Services, listener: socket.socket) -> AsyncIterator[Server]:
        async with running_server(services, listener) as running:
            yield running

    async def test_the_clock_is_real_time_in_production(self, server: Server, services: Services) -> None:
        async with services.database.connection() as conn:
            await conn.execute("insert into app_clocks values ('default', 86400)")
        async with open_clock(services.database, services.valkey, movable=services.settings.development) as clock:
            assert abs(clock.now("default") - utc_now()) < timedelta(minutes=1)
        for method in ("GET", "POST"):
            async with server.http.request(method, f"{server.url}/dev/clock") as response:
                assert response.status == 404
