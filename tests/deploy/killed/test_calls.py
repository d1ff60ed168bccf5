"""A process that is killed in the middle of a call under a key, or of the work on a webhook, blocks neither."""

import asyncio
import socket
from contextlib import suppress
from typing import Any

from aiohttp import ClientError, ClientSession

from app.http.rows.webhooks import webhook_row
from app.services import Services
from app.settings import Settings
from app.work.jobs import JobRow
from app.work.webhooks import worker_of
from app.work.worker import run_jobs
from storage.jobs.inbox import Webhook
from storage.jobs.jobs import WorkWebhook
from streams.tasks import background
from tests.app.platform import deliver, source
from tests.app.shop import TABLE, Shop
from tests.deploy.commands import command
from tests.deploy.serving import server_env
from tests.running.servers import running_server
from tests.waiting import until


async def test_key_of_a_killed_server_is_free_after_a_while_and_the_effect_happens_once(
    settings: Settings, services: Services, listener: socket.socket, unused_tcp_port: int
) -> None:
    async def rows(query: str) -> list[Any]:
        async with services.database.connection() as conn:
            return [tuple(row) for row in await conn.fetch(query)]

    async with services.database.connection() as conn:
        await conn.execute(TABLE)
    shop = Shop()
    async with running_server(services, listener, shop.rows) as small:
        _, token = await small.login()
        headers = {"X-Service-Session-Token": token, "Idempotency-Key": "order-1"}

        async def order(url: str) -> int:
            async with small.http.post(f"{url}/bp/order", headers=headers, json={"item": "tea"}) as response:
                return response.status

        async def order_of_the_killed() -> None:
            with suppress(ClientError):
                await order(f"http://127.0.0.1:{unused_tcp_port}")

        env = server_env(settings, PORT=str(unused_tcp_port), PARLEY_PROCESSES="1")
        async with command("tests.deploy.processes.small_process", "shop", **env) as process:
            await process.until("ready")
            async with background(order_of_the_killed()):
                await until(lambda: rows("select 1 from idempotency_keys"))
                assert await order(small.url) == 409
                process.process.kill()
        [(operation_id,)] = await rows("select operation_id from idempotency_keys")
        assert await order(small.url) == 409
        async with services.database.connection() as conn:
            await conn.execute("update idempotency_keys set claimed_at = claimed_at - interval '61 seconds'")
        assert [await order(small.url), await order(small.url)] == [200, 200]
        assert await rows("select operation_id, item from orders") == [(operation_id, "tea")]


async def test_webhook_of_a_killed_worker_is_worked_on_by_another(
    settings: Settings, services: Services, listener: socket.socket
) -> None:
    done: asyncio.Queue[str | None] = asyncio.Queue()

    async def work(_: Services, webhook: Webhook) -> None:
        await done.put(webhook.state.event_id)

    async def status() -> str:
        async with services.database.connection() as conn:
            found: str = await conn.fetchval("select status from webhooks")
            return found

    async def is_done() -> bool:
        return await status() == "done"

    async with (
        running_server(services, listener, [webhook_row(source(work))]) as small,
        ClientSession() as http,
        command("tests.deploy.processes.small_process", "worker", **server_env(settings)) as process,
    ):
        await process.event("worker.started")
        assert await deliver(http, small.url, {"id": "evt_1"}) == (200, None)
        await process.until("begun evt_1")
        process.process.kill()
        await process.end()
        assert await status() == "received"
        jobs = [JobRow(WorkWebhook, worker_of([source(work)]))]
        async with background(run_jobs(services, jobs=jobs, scheduled=False, stalled_s=1, poll_s=0.1)):
            async with asyncio.timeout(20):
                assert await done.get() == "evt_1"
            await until(is_done)
