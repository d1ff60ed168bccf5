"""Calls of an app's server, requests to endpoints, and a worker in the process of the test."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from app.http.callers.tokens import make_server_token
from app.services import Services
from streams.tasks import background
from tests.running.servers import SERVER_KEY, Server
from tests.waiting import until


def token(**claims: str) -> dict[str, str]:
    """The header of a call by the server of the app `default`."""
    made = make_server_token(kid="development", alg="HS256", key=SERVER_KEY, app_id="default", **claims)
    return {"X-Service-Auth-Token": made}


async def move_to_noon(server: Server) -> None:
    """Move the clock of the app to a noon, so that no test of what users may do in a day meets its end."""
    at = {"app": "default", "at": "2027-01-15T12:00:00Z"}
    status, reply = await ask(server, "POST", "/dev/clock", json=at)
    assert status == 200, reply


async def ask(server: Server, method: str, path: str, **options: Any) -> tuple[int, Any]:
    """The status and the JSON, if any, of a response. `options` are those of aiohttp's client."""
    async with server.http.request(method, server.url + path, **options) as response:
        return response.status, await response.json() if response.content_type == "application/json" else None


@asynccontextmanager
async def working(services: Services, **options: float) -> AsyncIterator[None]:
    """Run all jobs during the block, except those at fixed times. `options` are those of `run_jobs`."""
    from app.work.worker import run_jobs  # noqa: PLC0415 - slow to import, for each worker of the tests

    async with background(run_jobs(services, scheduled=False, **{"poll_s": 0.05, **options})):
        yield


_DUE = """
select 1 from procrastinate_jobs
where status = 'doing' or (status = 'todo' and coalesce(scheduled_at, now()) <= now()) limit 1
"""


async def work_off(services: Services) -> None:
    """Run jobs until none is due."""

    async def idle() -> bool:
        async with services.database.connection() as conn:
            return await conn.fetchval(_DUE) is None

    async with working(services):
        await until(idle)
