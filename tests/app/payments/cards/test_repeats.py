"""Requests that are repeated after the platform has forgotten the keys of the calls that they have caused."""

from datetime import timedelta
from typing import Any

import pytest

from streams.wire.codec import rfc3339
from tests.app.callers import ask, work_off
from tests.app.payments.cards.shop import Buyer, Shop
from tests.app.payments.cards.subscribers import setup, subscribe
from tests.calendar.clock import utc_now
from tests.waiting import until
from vendors.sandbox.faults import key_of

ORDER: dict[str, Any] = {"with_customer_payment_method": True, "product_id": "coins_100"}
KEPT_H = 24
"""How long Stripe keeps a key."""


async def later(shop: Shop, *, hours: float) -> None:
    """Let time pass for the app and its platform."""
    ahead = timedelta(seconds=shop.server.services.clock.offset_s("default")) + timedelta(hours=hours)
    body = {"app": "default", "at": rfc3339(utc_now() + ahead)}
    assert (await ask(shop.server, "POST", "/dev/clock", json=body))[0] == 200


async def lose(shop: Shop, name: str, *, skip: int, fault: str = "cut_mid_stream") -> None:
    """Let the platform do one call, after `skip` others, without a response. `refuse`: without doing it."""
    times = 3 if fault == "refuse" else 1  # Refused connections are tried again.
    await shop.configure(secret_key=key_of(name=name, fault=fault, position=0, skip=skip, times=times))


async def charged(shop: Shop, customer: str) -> list[str]:
    listed = await shop.listed("payment_intents", customer=customer, limit="100")
    return [intent["id"] for intent in listed if intent["amount_received"]]


@pytest.fixture
async def customer(shop: Shop, buyer: Buyer) -> str:
    """The buyer as a customer of the platform, with a card."""
    name: str = (await shop.created(buyer))["customer_id"]
    await shop.link(name)
    return name


@pytest.mark.parametrize("hours", [1, KEPT_H - 1, KEPT_H, KEPT_H + 20])
@pytest.mark.parametrize("fault", ["cut_mid_stream", "refuse"])
async def test_a_payment_is_charged_once(shop: Shop, buyer: Buyer, customer: str, hours: float, fault: str) -> None:
    # The first call lists the cards, the second one charges the newest.
    await lose(shop, buyer.uid, skip=1, fault=fault)
    assert (await shop.create(buyer, key=f"{hours}/{fault}", **ORDER))[0] == 400
    await shop.configure()
    await later(shop, hours=hours)
    status, intent = await shop.create(buyer, key=f"{hours}/{fault}", **ORDER)
    assert (status, intent["status"]) == (200, "succeeded")
    assert await charged(shop, customer) == [intent["id"]]
    assert await shop.coins(await shop.back(buyer.device)) == 100


async def test_a_payment_is_found_behind_a_hundred_later_ones(shop: Shop, buyer: Buyer, customer: str) -> None:
    await lose(shop, buyer.uid, skip=1)
    assert (await shop.create(buyer, key="many", **ORDER))[0] == 400
    await shop.configure()
    for _ in range(100):
        await shop.platform("payment_intents", amount="100", currency="usd", customer=customer)
    await later(shop, hours=KEPT_H + 1)
    assert (await shop.create(buyer, key="many", **ORDER))[1]["status"] == "succeeded"
    assert len(await shop.listed("payment_intents", customer=customer, limit="100")) == 100
    assert await shop.coins(await shop.back(buyer.device)) == 100


async def test_a_payment_that_an_event_has_reported_meanwhile_is_read_back(
    shop: Shop, buyer: Buyer, customer: str
) -> None:
    await shop.send_webhooks()
    await lose(shop, buyer.uid, skip=1)
    assert (await shop.create(buyer, key="reported", **ORDER))[0] == 400
    await shop.configure()
    await until(lambda: shop.sandbox.sandbox.deliveries.is_idle)
    await work_off(shop.server.services)
    assert await shop.coins(buyer) == 100
    await shop.stop_webhooks()
    await later(shop, hours=KEPT_H + 1)
    [paid] = await charged(shop, customer)
    await shop.platform("refunds", payment_intent=paid)
    status, intent = await shop.create(buyer, key="reported", **ORDER)
    assert (status, intent["id"], intent["status"]) == (200, paid, "succeeded")
    assert await charged(shop, customer) == [paid]


@pytest.mark.parametrize("hours", [KEPT_H - 1, KEPT_H, KEPT_H + 20])
@pytest.mark.parametrize("fault", ["cut_mid_stream", "refuse"])
async def test_a_subscription_is_created_once(shop: Shop, buyer: Buyer, hours: float, fault: str) -> None:
    card = await setup(shop, buyer)
    customer = (await shop.created(buyer))["customer_id"]
    # The setup intent is read, the default is set, and then the subscription is created.
    await lose(shop, buyer.uid, skip=2, fault=fault)
    body = {"setup_intent_id": card, "key": f"{hours}/{fault}"}
    assert (await subscribe(shop, buyer, **body))[0] == 400
    await shop.configure()
    await later(shop, hours=hours)
    status, answer = await subscribe(shop, await shop.back(buyer.device), **body)
    assert (status, answer["cardpay_sub"]["status"]) == (200, "active")
    [subscription] = await shop.listed("subscriptions", customer=customer, status="all")
    assert subscription["id"] == answer["cardpay_sub"]["id"]
    assert len(await shop.listed("invoices", customer=customer)) == 1
