"""A process that is killed at any call to the card platform leaves a state that others complete, exactly once."""

import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from app.payments.cards.reconciliation import reconcile_card_platform
from app.services import Services
from app.settings import Settings
from app.work.worker import run_jobs
from storage.payments.cards.reconciliation import ReconcileCardPlatform
from streams.tasks import background
from streams.wire.codec import rfc3339
from tests.app.callers import ask
from tests.app.payments.cards.shop import Buyer, Shop
from tests.app.payments.cards.subscribers import setup, subscribe
from tests.calendar.clock import utc_now
from tests.deploy.killed.kills import RELIABLE, STALLED_S, At, free_key, kill_server, kill_worker, verify_ledger
from tests.running.servers import running_server
from tests.sampling import paired
from tests.waiting import until
from vendors.sandbox.server import Running, listening

CREATE = 1
"""The call that charges a card. The one before reads which card it is."""
SUBSCRIBE = 2
"""The call that makes a subscription. Those before read the card and make it the default one, those after read the
subscription back with its invoice and payment."""
FIRST = ["the client", "the reconciliation"]
Request = Callable[[Shop], Awaitable[tuple[int, Any]]]


@pytest.fixture
async def platform() -> AsyncIterator[Running]:
    async with listening() as sandbox:
        yield sandbox


@pytest.fixture
async def shop(services: Services, listener: socket.socket, platform: Running) -> AsyncIterator[Shop]:
    """The server of this process, which survives the one that is killed."""
    async with running_server(services, listener) as server:
        opened = Shop(server, platform)
        await configure(opened)
        yield opened
        await services.clock.move("default", offset_s=0)


async def configure(shop: Shop, at: At | None = None) -> None:
    key = "sandbox" if at is None else at.key
    await shop.configure(base_url=f"{shop.sandbox.url}/stripe", secret_key=key, breaker=RELIABLE)


async def killed_during(shop: Shop, settings: Settings, port: int, request: Request, *, at: At | None) -> None:
    """Send a request to another server, which is killed at a call to the platform."""
    await configure(shop, at)
    await kill_server(
        settings,
        shop.sandbox,
        port,
        lambda url: request(replace(shop, server=replace(shop.server, url=url))),
        at=at,
    )
    await configure(shop)


async def recovered(shop: Shop, *, minutes: int = 3) -> None:
    """Let the job at fixed times find what was left."""
    at = rfc3339(utc_now() + timedelta(minutes=minutes))
    assert (await ask(shop.server, "POST", "/dev/clock", json={"app": "default", "at": at}))[0] == 200
    await reconcile_card_platform(shop.server.services, ReconcileCardPlatform(app_id="default", config="Default"))


async def kinds(shop: Shop, buyer: Buyer) -> list[str]:
    async with shop.server.services.database.connection() as conn:
        rows = await conn.fetch("select kind from asset_entries where uid = $1 order by entry_id", buyer.uid)
    return [row["kind"] for row in rows]


@asynccontextmanager
async def working(shop: Shop) -> AsyncIterator[None]:
    """Let another worker take over the jobs of the one that was killed."""
    async with background(run_jobs(shop.server.services, scheduled=False, poll_s=0.05, stalled_s=STALLED_S)):
        yield


@pytest.mark.parametrize(("at", "first"), paired([At(CREATE, before=True), At(CREATE), None], FIRST))
async def test_a_charge_is_granted_once(
    shop: Shop, settings: Settings, unused_tcp_port: int, at: At | None, first: str
) -> None:
    buyer = await shop.buyer()
    customer = (await shop.created(buyer))["customer_id"]
    await shop.link(customer)

    async def buy(doomed: Shop) -> tuple[int, Any]:
        return await doomed.create(buyer, key="1", product_id="coins_100", with_customer_payment_method=True)

    await killed_during(shop, settings, unused_tcp_port, buy, at=at)
    charged = at != At(CREATE, before=True)
    assert await kinds(shop, buyer) == ["grant"] * (at is None)
    if first == "the reconciliation":
        await recovered(shop)
        assert await kinds(shop, buyer) == ["grant"] * charged
    await free_key(shop.server.services)
    status, intent = await buy(shop)
    assert (status, intent["status"]) == (200, "succeeded")
    assert await kinds(shop, buyer) == ["grant"]
    paid = [payment["id"] for payment in await shop.listed("payment_intents", customer=customer, limit="100")]
    assert paid[:-1] == [intent["id"]], "the other one has made the customer"
    await verify_ledger(settings)


@pytest.mark.parametrize("at", [At(0, before=True), At(0), At(1, before=True)], ids=str)
async def test_a_new_user_is_one_customer(
    shop: Shop, settings: Settings, unused_tcp_port: int, at: At | None
) -> None:
    """The calls: the customer, and the payment."""
    buyer = await shop.buyer()

    async def buy(doomed: Shop) -> tuple[int, Any]:
        return await doomed.create(buyer, key="1", product_id="coins_100")

    await killed_during(shop, settings, unused_tcp_port, buy, at=at)
    await free_key(shop.server.services)
    status, intent = await buy(shop)
    assert (status, intent["status"]) == (200, "requires_payment_method")
    made = [call.asked["key"] for call in shop.sandbox.bill.since(0) if call.asked.get("path") == "customers"]
    assert len(set(made)) == 1
    assert len(await shop.listed("payment_intents", customer=intent["customer_id"])) == 1


@pytest.mark.parametrize(
    ("at", "first"),
    paired(
        [At(1), At(SUBSCRIBE, before=True), At(SUBSCRIBE), At(SUBSCRIBE + 1, before=True), At(SUBSCRIBE + 3), None],
        FIRST,
    ),
)
async def test_a_subscription_is_made_and_granted_once(
    shop: Shop, settings: Settings, unused_tcp_port: int, at: At | None, first: str
) -> None:
    buyer = await shop.buyer()
    setup_intent = await setup(shop, buyer)

    async def buy(doomed: Shop) -> tuple[int, Any]:
        return await subscribe(doomed, buyer, key="1", setup_intent_id=setup_intent)

    await killed_during(shop, settings, unused_tcp_port, buy, at=at)
    made = at is None or ((at.call, at.before) >= (SUBSCRIBE, False) and at != At(SUBSCRIBE, before=True))
    if first == "the reconciliation":
        await recovered(shop)
        assert await kinds(shop, buyer) == ["grant"] * made
    await free_key(shop.server.services)
    status, answer = await buy(shop)
    assert (status, answer["cardpay_sub"]["status"]) == (200, "active")
    assert await kinds(shop, buyer) == ["grant"]
    customer = answer["cardpay_sub"]["customer_id"]
    assert len(await shop.listed("subscriptions", customer=customer)) == 1
    assert len(await shop.listed("payment_intents", customer=customer)) == 1
    await verify_ledger(settings)


@pytest.mark.parametrize("call", range(3))
async def test_a_refund_is_entered_once_by_the_jobs_of_webhooks(shop: Shop, settings: Settings, call: int) -> None:
    """The calls of each job: the payment, its refunds, and its disputes."""
    buyer = await shop.buyer()
    intent = (await shop.created(buyer, product_id="coins_100"))["id"]
    await shop.pay(intent)
    assert (await shop.get(buyer, intent))[0] == 200
    await shop.send_webhooks()
    await shop.platform("refunds", payment_intent=intent)
    await until(lambda: has_webhooks(shop))
    await configure(shop, At(call))
    await kill_worker(settings, shop.sandbox, at=At(call))
    await configure(shop)
    async with working(shop):
        await until(lambda: has_worked(shop))
    assert await kinds(shop, buyer) == ["grant", "refund"]
    await verify_ledger(settings)


async def has_webhooks(shop: Shop) -> bool:
    async with shop.server.services.database.connection() as conn:
        return bool(await conn.fetchval("select exists (select from webhooks)"))


async def has_worked(shop: Shop) -> bool:
    async with shop.server.services.database.connection() as conn:
        return not await conn.fetchval("select exists (select from webhooks where status <> 'done')")
