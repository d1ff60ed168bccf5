"""A process that is killed at any call to the wallet platform leaves a state that others complete, exactly once."""

import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from itertools import count
from typing import Any
from uuid import uuid4

import pytest
from aiohttp import ClientError

from app.services import Services
from app.settings import Settings
from streams.tasks import background
from tests.app.callers import working
from tests.app.payments.wallets import Wallet, wallet_at
from tests.deploy.commands import command
from tests.deploy.serving import server_env
from tests.servers import running_server
from tests.waiting import passes, until
from vendors.sandbox.faults import Fault, KeyOptions, key_of
from vendors.sandbox.server import Running, listening

HANG = Fault.HANG_BEFORE_OUTPUT
Request = Callable[[Wallet, dict[str, str]], Awaitable[Any]]


@pytest.fixture
async def platform() -> AsyncIterator[Running]:
    async with listening() as sandbox:
        yield sandbox


@pytest.fixture
async def wallet(services: Services, listener: socket.socket, platform: Running) -> AsyncIterator[Wallet]:
    """A user of the server of this process, which survives the one that is killed."""
    async with running_server(services, listener) as server, wallet_at(server, platform) as opened:
        yield opened


def hanging_at(number: int) -> str:
    """The key with which the platform executes every call, and answers all of the first ones but one."""
    for seed in count():
        options = {"fault": HANG, "rate": 0.5, "times": number + 1, "seed": seed, "name": uuid4().hex[:8]}
        parsed = KeyOptions.of_key(key := key_of(**options))
        if [parsed.has_fault(nth) for nth in range(number + 1)] == [False] * number + [True]:
            return key
    raise AssertionError


async def killed_during(wallet: Wallet, settings: Settings, port: int, request: Request, *, at_call: int) -> None:
    """Send a request to another server, which is killed while the platform does not answer one of its calls."""
    await wallet.configure(client_secret=hanging_at(at_call), breaker={"min_calls": 1_000_000})
    doomed = replace(wallet, server=replace(wallet.server, url=f"http://127.0.0.1:{port}"))
    async with command("app", "serve", **server_env(settings, PORT=str(port), PARLEY_PROCESSES="1")) as process:
        await process.event("server.listening")

        async def ask() -> None:
            with suppress(ClientError):
                await request(doomed, {"Idempotency-Key": "1"})

        async with background(ask()):
            await hanging(wallet)
            process.process.kill()
            await process.end()
    await wallet.configure(client_secret="sandbox")


async def hanging(wallet: Wallet) -> None:
    await wallet.sandbox.bill.wait(lambda call: call.fault == HANG and bool(call.asked) and call.ended is None)
    await passes()


async def recovered(wallet: Wallet) -> None:
    """Let the jobs at fixed times find what was left."""
    now = wallet.server.services.clock.now("default")
    await wallet.travel(now + timedelta(minutes=3))
    await wallet.reconcile()


async def free_key(wallet: Wallet) -> None:
    """Let the key of the killed request be free, as it is after a minute."""
    await wallet.rows("update idempotency_keys set claimed_at = claimed_at - interval '61 seconds'")


@pytest.mark.parametrize("retried", [False, True])
@pytest.mark.parametrize(
    ("path", "table"), [("walletpay/create", "wallet_orders"), ("walletpay_sub", "wallet_subscriptions")]
)
async def test_a_creation_is_completed(
    wallet: Wallet, settings: Settings, unused_tcp_port: int, path: str, table: str, *, retried: bool
) -> None:
    product = "coins" if table == "wallet_orders" else "month"

    async def create(at: Wallet, headers: dict[str, str]) -> tuple[int, Any]:
        return await at.post(path, {"product_id": product}, **headers)

    await killed_during(wallet, settings, unused_tcp_port, create, at_call=0)
    if retried:
        await free_key(wallet)
        assert (await create(wallet, {"Idempotency-Key": "1"}))[0] == 200
    else:
        await recovered(wallet)
    rows = await wallet.rows(f"select status in ('CREATED', 'APPROVAL_PENDING') from {table}")  # noqa: S608
    assert rows == [(True,)]
    created = wallet.calls("/v2/checkout/orders" if table == "wallet_orders" else "/v1/billing/subscriptions")
    assert len({call["key"] for call in created}) == 1


@pytest.mark.parametrize("retried", [False, True])
async def test_a_capture_is_granted(
    wallet: Wallet, settings: Settings, unused_tcp_port: int, *, retried: bool
) -> None:
    order = await wallet.order()
    await wallet.approve(order["approve_link_href"])
    await killed_during(
        wallet, settings, unused_tcp_port, lambda at, headers: at.capture(order["id"], **headers), at_call=0
    )
    assert await wallet.entries() == []
    if retried:
        await free_key(wallet)
        _, answer = await wallet.capture(order["id"], **{"Idempotency-Key": "1"})
        assert answer["walletpay_order"]["status"] == "COMPLETED"
    else:
        await recovered(wallet)
    assert await wallet.kinds() == ["grant"]
    assert len({call["key"] for call in wallet.calls("/capture")}) == 1


@pytest.mark.parametrize("at_call", range(4))
async def test_an_upgrade_is_completed(
    wallet: Wallet, settings: Settings, unused_tcp_port: int, at_call: int
) -> None:
    """The calls: the source, its payments, the plan of the target, and the new subscription."""
    sub_id = await wallet.subscribed()
    await killed_during(wallet, settings, unused_tcp_port, lambda at, _: at.upgrade(sub_id), at_call=at_call)
    await recovered(wallet)
    status, answer = await wallet.upgrade(sub_id)
    assert (status, answer["walletpay_sub"]["status"]) == (200, "APPROVAL_PENDING")
    await wallet.approve(answer["walletpay_sub"]["approve_link_href"])
    await wallet.sync(answer["walletpay_sub"]["id"])
    await settled(wallet)
    assert len(await wallet.rows("select 1 from wallet_subscriptions")) == 2
    assert await wallet.kinds() == ["grant", "end", "grant", "cancel"]


@pytest.mark.parametrize("at_call", range(4))
async def test_the_end_of_a_replaced_subscription_is_completed(
    wallet: Wallet, settings: Settings, at_call: int
) -> None:
    """The calls: the cancellation, the subscription, its payments, and the refund."""
    sub_id = await wallet.subscribed()
    new = (await wallet.upgrade(sub_id))[1]["walletpay_sub"]
    await wallet.approve(new["approve_link_href"])
    await wallet.sync(new["id"])
    await wallet.configure(client_secret=hanging_at(at_call), breaker={"min_calls": 1_000_000})
    async with command("app", "worker", **server_env(settings)) as worker:
        await hanging(wallet)
        worker.process.kill()
        await worker.end()
    await wallet.configure(client_secret="sandbox")
    await recovered(wallet)
    await settled(wallet)
    refunds = wallet.calls("/refund")
    assert (len({call["key"] for call in refunds}), len({call["key"] for call in wallet.calls("/cancel")})) == (
        1,
        1,
    )
    sub = await wallet.platform("GET", f"/v1/billing/subscriptions/{sub_id}")
    assert sub["status"] == "CANCELLED"
    assert (await wallet.assets())["pro"]["bp_product_id"] == "year"


async def settled(wallet: Wallet) -> None:
    async def done() -> bool:
        return await wallet.rows("select state from wallet_upgrades") == [("done",)]

    async with working(wallet.server.services):
        await until(done)
