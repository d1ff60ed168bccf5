"""A process that is killed at any call to the payout platform leaves a withdrawal that others pay, exactly once."""

import socket
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from app.services import Services
from app.settings import Settings
from app.work.worker import run_jobs
from streams.tasks import background
from tests.app.withdrawals.payer import Payer
from tests.deploy.killed.kills import RELIABLE, STALLED_S, At, kill_server, kill_worker, verify_ledger
from tests.running.servers import running_server
from tests.waiting import until
from vendors.sandbox.server import Running, listening


@pytest.fixture
async def platform() -> AsyncIterator[Running]:
    async with listening() as sandbox:
        yield sandbox


@pytest.fixture
async def payer(services: Services, listener: socket.socket, platform: Running) -> AsyncIterator[Payer]:
    """A server that survives the process that is killed."""
    async with running_server(services, listener) as server:
        opened = Payer(server, platform.url)
        await opened.configure(breaker=RELIABLE)
        yield opened


async def paid(payer: Payer, uid: str) -> None:
    """Let another worker complete what a killed one has begun."""

    async def is_paid() -> bool:
        await payer.check()
        return await payer.status(uid) == "WITHDRAW_SUCCESS"

    async with background(run_jobs(payer.server.services, scheduled=False, poll_s=0.05, stalled_s=STALLED_S)):
        await until(is_paid, every_s=0.3)


def submitted(platform: Running) -> set[str]:
    """Our ids of the payouts that the platform was asked to make."""
    asked = [call.asked for call in platform.bill.since(0) if call.asked]
    return {call["key"] for call in asked if call.get("path", "").endswith("/payouts") and call["key"]}


async def test_a_withdrawal_whose_answer_is_lost_is_started_once(
    payer: Payer, settings: Settings, platform: Running, unused_tcp_port: int
) -> None:
    uid = await payer.user()

    async def withdraw(url: str) -> tuple[int, Any]:
        payer_there = Payer(replace(payer.server, url=url), platform.url)
        return await payer_there.withdraw(uid)

    await kill_server(settings, platform, unused_tcp_port, withdraw, at=None)
    status, answer = await payer.withdraw(uid)
    assert status == 200
    await paid(payer, uid)
    assert submitted(platform) == {answer["withdraw"]["withdraw_id"]}
    assert await payer.entries(uid) == ["reserve", "pay"]
    await verify_ledger(settings)


async def held(payer: Payer) -> list[str]:
    async with payer.server.services.database.connection() as conn:
        rows = await conn.fetch("select task_name from procrastinate_jobs where status = 'failed'")
    return [row["task_name"] for row in rows]


@pytest.mark.parametrize("at", [At(0, before=True), At(0), At(1)], ids=str)
async def test_a_withdrawal_is_paid_once(payer: Payer, settings: Settings, platform: Running, at: At) -> None:
    """The calls of the jobs: the payout, and what has become of it."""
    uid = await payer.user()
    assert (await payer.withdraw(uid))[0] == 200
    await payer.configure(secret=at.key, breaker=RELIABLE)
    await kill_worker(settings, platform, at=at)
    await payer.configure(secret="sandbox", breaker=RELIABLE)
    await paid(payer, uid)
    assert len(submitted(platform)) == 1
    assert len(await payer.payouts_of(uid)) == 1
    assert await payer.entries(uid) == ["reserve", "pay"]
    assert await held(payer) == []
    await verify_ledger(settings)
