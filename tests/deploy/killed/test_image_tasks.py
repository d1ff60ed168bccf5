"""A process that is killed at any call to an image host leaves a task that ends, and is made once at most."""

import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest

from app.services import Services
from app.settings import Settings
from app.work.worker import run_jobs
from streams.tasks import background
from tests.app.ai.images.studio import IMAGINE, Studio
from tests.app.callers import ask
from tests.deploy.killed.kills import STALLED_S, At, free_key, kill_server, kill_worker, verify_ledger
from tests.running.servers import running_server
from vendors.sandbox.server import listening

QUOTA = {"asset": "coins", "amount": 2, "free_per_day": 3}
KEY = {"Idempotency-Key": "1"}


@pytest.fixture
async def studio(services: Services, listener: socket.socket) -> AsyncIterator[Studio]:
    """A server that survives the process that is killed."""
    async with listening() as sandbox, running_server(services, listener) as server:
        yield Studio(server, sandbox)


async def ended(studio: Studio, uid: str, task_id: str) -> dict[str, Any]:
    """Let another worker complete what a killed process has begun."""
    async with background(run_jobs(studio.server.services, scheduled=False, poll_s=0.05, stalled_s=STALLED_S)):
        return await studio.ended(uid, task_id)


def created(studio: Studio) -> int:
    return len([call for call in studio.sandbox.bill.since(0) if call.stage == "create"])


@pytest.mark.parametrize("at", [At(0, before=True), At(0), None], ids=str)
async def test_task_of_a_killed_server_is_submitted_once(
    studio: Studio, settings: Settings, unused_tcp_port: int, at: At | None
) -> None:
    await studio.configure(key="sandbox" if at is None else at.key, quota=QUOTA)
    uid = await studio.user()
    json = {"strategy": "pictures", "type": "imagine", "data": {"prompt": "a cat"}}

    async def imagine(url: str) -> None:
        headers = studio.sessions[uid] | KEY
        async with studio.server.http.post(url + IMAGINE, json=json, headers=headers) as response:
            await response.read()

    await kill_server(settings, studio.sandbox, unused_tcp_port, imagine, at=at)
    await free_key(studio.server.services)
    status, again = await ask(studio.server, "POST", IMAGINE, json=json, headers=studio.sessions[uid] | KEY)
    assert (status, again["data"]["status"], again["current_count"]) == (200, "pending", 1)
    await studio.run("update image_tasks set created_at = created_at - interval '61 seconds'")
    reply = await ended(studio, uid, again["data"]["task_id"])
    wanted = ("finished", 1) if at is None else ("failed", 3)
    assert (reply["data"]["status"], reply["current_count"]) == wanted
    assert created(studio) == 1
    await verify_ledger(settings)


@pytest.mark.parametrize("at", [At(1, before=True), At(1)], ids=str)
@pytest.mark.parametrize("outcome", ["", "[fail=no picture]"])
async def test_task_of_a_killed_worker_ends_once(studio: Studio, settings: Settings, at: At, outcome: str) -> None:
    await studio.configure(key=at.key, quota=QUOTA)
    uid = await studio.user()
    begun = await studio.begin(uid, "imagine", {"prompt": f"a cat {outcome}"})
    await kill_worker(settings, studio.sandbox, at=at)
    reply = await ended(studio, uid, begun["data"]["task_id"])
    assert (reply["data"]["status"], reply["current_count"]) == (("failed", 3) if outcome else ("finished", 1))
    assert created(studio) == 1
    await verify_ledger(settings)
