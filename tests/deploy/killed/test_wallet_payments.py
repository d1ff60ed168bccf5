"""A process that is killed at any call to the wallet platform leaves a state that others complete, exactly once."""

import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from app.services import Services
from app.settings import Settings
from tests.app.callers import working
from tests.app.payments.wallet.wallets import Wallet, wallet_at
from tests.deploy.killed.kills import RELIABLE, At, free_key, kill_server, kill_worker, verify_ledger
from tests.running.servers import running_server
from tests.sampling import paired
from tests.waiting import until
from vendors.sandbox.server import Running, listening

KEY = {"Idempotency-Key": "1"}
ONE_CALL = (At(0, before=True), At(0), None)
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


async def killed_during(wallet: Wallet, settings: Settings, port: int, request: Request, *, at: At | None) -> None:
    """Send a request to another server, which is killed at a call to the platform."""
    await wallet.configure(client_secret="sandbox" if at is None else at.key, breaker=RELIABLE)

    async def ask(url: str) -> object:
        return await request(replace(wallet, server=replace(wallet.server, url=url)), KEY)

    await kill_server(settings, wallet.sandbox, port, ask, at=at)
    await wallet.configure(client_secret="sandbox")


async def recovered(wallet: Wallet) -> None:
    """Let the jobs at fixed times find what was left."""
    now = wallet.server.services.clock.now("default")
    await wallet.travel(now + timedelta(minutes=3))
    await wallet.reconcile()


@pytest.mark.parametrize(("at", "retried"), paired(ONE_CALL, [False, True]))
@pytest.mark.parametrize(
    ("path", "table"), [("walletpay/create", "wallet_orders"), ("walletpay_sub", "wallet_subscriptions")]
)
async def test_a_creation_is_completed(
    wallet: Wallet, settings: Settings, unused_tcp_port: int, *, path: str, table: str, at: At | None, retried: bool
) -> None:
    product = "coins" if table == "wallet_orders" else "month"

    async def create(at: Wallet, headers: dict[str, str]) -> tuple[int, Any]:
        return await at.post(path, {"product_id": product}, **headers)

    await killed_during(wallet, settings, unused_tcp_port, create, at=at)
    if retried:
        await free_key(wallet.server.services)
        assert (await create(wallet, KEY))[0] == 200
    else:
        await recovered(wallet)
    rows = await wallet.rows(f"select status in ('CREATED', 'APPROVAL_PENDING') from {table}")
    assert rows == [(True,)]
    created = wallet.calls("/v2/checkout/orders" if table == "wallet_orders" else "/v1/billing/subscriptions")
    assert len({call["key"] for call in created}) == 1


@pytest.mark.parametrize(("at", "first"), paired(ONE_CALL, ["the client", "the reconciliation"]))
async def test_a_capture_is_granted_once(
    wallet: Wallet, settings: Settings, unused_tcp_port: int, at: At | None, first: str
) -> None:
    order = await wallet.order()
    await wallet.approve(order["approve_link_href"])
    await killed_during(
        wallet, settings, unused_tcp_port, lambda doomed, headers: doomed.capture(order["id"], **headers), at=at
    )
    assert await wallet.kinds() == ["grant"] * (at is None)
    if first == "the reconciliation":
        await recovered(wallet)
        assert await wallet.kinds() == ["grant"] * (at != At(0, before=True))
    await free_key(wallet.server.services)
    _, answer = await wallet.capture(order["id"], **KEY)
    assert answer["walletpay_order"]["status"] == "COMPLETED"
    assert await wallet.kinds() == ["grant"]
    assert len({call["key"] for call in wallet.calls("/capture")}) == 1
    await verify_ledger(settings)


@pytest.mark.parametrize("at_call", range(4))
async def test_an_upgrade_is_completed(
    wallet: Wallet, settings: Settings, unused_tcp_port: int, at_call: int
) -> None:
    """The calls: the source, its payments, the plan of the target, and the new subscription."""
    sub_id = await wallet.subscribed()
    await killed_during(wallet, settings, unused_tcp_port, lambda doomed, _: doomed.upgrade(sub_id), at=At(at_call))
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
    await wallet.configure(client_secret=At(at_call).key, breaker=RELIABLE)
    await kill_worker(settings, wallet.sandbox, at=At(at_call))
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
    await verify_ledger(settings)


async def settled(wallet: Wallet) -> None:
    async def done() -> bool:
        return await wallet.rows("select state from wallet_upgrades") == [("done",)]

    async with working(wallet.server.services):
        await until(done)
