"""`python -m app worker` as a process: jobs, health, shutdown, and errors at the start."""

import asyncio
import signal
from pathlib import Path
from typing import Any

from aiohttp import ClientSession

from app.services import Services
from app.settings import Settings
from app.work.worker import run_jobs
from storage.jobs.jobs import Job, RemoveExpired, RemoveObjects, WorkWebhook, enqueue
from storage.operators.audit import COMMAND
from storage.withdrawals.withdrawals import CheckPayouts
from streams.tasks import background
from streams.wire.codec import loads
from tests.app.notes import in_an_hour
from tests.deploy.commands import Command, command
from tests.deploy.processes.stalled_readers import http
from tests.deploy.serving import server_env, settings
from tests.peers.certificates import Authority
from tests.waiting import until

__all__ = ["http", "settings"]

SLOW = RemoveExpired()


def worker_env(settings: Settings, **more: str) -> dict[str, str]:
    return server_env(settings) | more


async def line_of(worker: Command, event: str, job: Job) -> dict[str, Any]:
    """Return the next line of `event` about a job of the same kind as `job`. The worker runs scheduled jobs too."""
    while True:
        line = await worker.event(event)
        if line["job"] == job.task:
            return line


async def text_of(http: ClientSession, url: str) -> tuple[int, str]:
    async with http.get(url) as response:
        return response.status, await response.text()


async def test_worker_runs_a_stored_job_reports_it_and_ends_on_sigterm(
    settings: Settings, services: Services, http: ClientSession, unused_tcp_port: int
) -> None:
    await services.objects.put("gone.bin", b"x", content_type="application/octet-stream")
    async with services.database.transaction() as conn:
        job_id = await enqueue(conn, RemoveObjects(keys=["gone.bin"]))
    url = f"http://127.0.0.1:{unused_tcp_port}"
    async with command("app", "worker", **worker_env(settings, PARLEY_WORKER_PORT=str(unused_tcp_port))) as worker:
        line = await line_of(worker, "job.succeeded", RemoveObjects(keys=[]))
        assert (line["job_id"], line["attempt"]) == (job_id, 1)
        assert await services.objects.keys("") == []
        assert (await text_of(http, f"{url}/healthz"))[0] == 200
        status, body = await text_of(http, f"{url}/readyz")
        assert (status, loads(body)["parts"]["postgres"]) == (200, "ok")
        _, metrics = await text_of(http, f"{url}/metrics")
        assert 'parley_job_attempts_total{job="remove_objects",outcome="succeeded"} 1.0' in metrics
        assert (await text_of(http, f"{url}/bp/ai/offers"))[0] == 404
        worker.process.send_signal(signal.SIGTERM)
        assert await worker.end() == 0
    assert loads(worker.lines[-1])["event"] == "worker.stopped"


async def test_the_job_of_a_killed_worker_is_run_by_another(settings: Settings, services: Services) -> None:
    async def taken() -> Any:
        async with services.database.connection() as conn:
            return await conn.fetchval(
                "select id from procrastinate_jobs where status = 'doing' and task_name = $1", SLOW.task
            )

    async def none_left() -> bool:
        async with services.database.connection() as conn:
            return not await conn.fetchval("select 1 from procrastinate_jobs where task_name = $1", SLOW.task)

    await services.configs.put(
        "default", "limits", "default", {"conversation_days": 30}, author="test", origin=COMMAND
    )
    async with services.database.connection() as conn, conn.transaction():
        await conn.execute("lock table conversations in access exclusive mode")
        async with services.database.transaction() as other:
            await enqueue(other, SLOW)
        async with command("app", "worker", **worker_env(settings)) as first:
            await until(taken)
            first.process.kill()
            assert await first.end() != 0
    async with background(run_jobs(services, scheduled=False, stalled_s=1, poll_s=0.1)):
        await until(none_left)


async def test_a_job_outlives_more_killed_workers_than_it_has_attempts(
    settings: Settings, services: Services
) -> None:
    async def row() -> Any:
        async with services.database.connection() as conn:
            return await conn.fetchrow("select status, worker_id from procrastinate_jobs where id = $1", job_id)

    async def taken() -> bool:
        found = await row()
        return found["status"] == "doing" and found["worker_id"] is not None

    async def succeeded() -> bool:
        return await row() is None

    async with services.database.connection() as conn, conn.transaction():
        await conn.execute("lock table withdrawals in access exclusive mode")
        async with services.database.transaction() as other:
            job_id = await enqueue(other, CheckPayouts())
        for _ in range(CheckPayouts.attempts + 1):
            async with command("app", "worker", **worker_env(settings)) as worker:
                await until(taken)
                worker.process.kill()
                assert await worker.end() != 0
            async with services.database.transaction() as other:
                await other.execute("delete from procrastinate_workers")  # As if it were dead for long.
    async with background(run_jobs(services, scheduled=False, stalled_s=1, poll_s=0.1)):
        await until(succeeded)


async def test_worker_without_a_database_ends_with_one_line(settings: Settings, unused_tcp_port: int) -> None:
    nowhere = f"postgresql://me:pass-word@127.0.0.1:{unused_tcp_port}/parley"
    async with command("app", "worker", **worker_env(settings, DATABASE_URL=nowhere)) as worker:
        assert await worker.end() == 1
    (line,) = worker.lines
    assert line == (
        "parley: database: the database is not reachable: connection refused"
        f" (DATABASE_URL: 127.0.0.1:{unused_tcp_port}, database parley, user me)"
    )


async def test_worker_measures_what_waits_and_the_certificate_of_the_public_url(
    settings: Settings, services: Services, http: ClientSession, unused_tcp_port: int, tmp_path: Path
) -> None:
    async def are_measured() -> bool:
        _, metrics = await text_of(http, f"http://127.0.0.1:{unused_tcp_port}/metrics")
        return (
            'parley_certificate_end_timestamp_seconds{host="localhost"} ' in metrics
            and "\nparley_webhooks_waiting 1.0\n" in metrics
        )

    async with services.database.transaction() as conn:
        await enqueue(conn, WorkWebhook(app_id="default", webhook_id="w1"), run_at=in_an_hour())
    tls = Authority(tmp_path).server("localhost")
    async with await asyncio.start_server(lambda _, writer: writer.close(), "localhost", 0, ssl=tls) as proxy:
        public_url = f"https://localhost:{proxy.sockets[0].getsockname()[1]}"
        env = worker_env(settings, PARLEY_WORKER_PORT=str(unused_tcp_port), PARLEY_PUBLIC_URL=public_url)
        async with command("app", "worker", **env) as worker:
            await worker.event("worker.started")
            await until(are_measured)
