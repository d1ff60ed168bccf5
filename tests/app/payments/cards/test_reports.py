"""Payments, refunds and disputes with a card are reported to sinks once each."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from storage.configs.rows import ConfigKey
from storage.operators.audit import COMMAND
from streams.wire.codec import rfc3339
from tests.app.callers import ask, working
from tests.app.payments.cards.shop import Buyer, Shop
from tests.app.payments.cards.subscribers import read, subscribed
from tests.app.payments.reports import add_sink, brief, reported
from tests.waiting import until

DEVICE = {"os": "iOS 19", "Größe": [1, 2.5, None], "nested": {"b": 2**70, "a": True}}


@pytest.fixture
async def shop(shop: Shop) -> AsyncIterator[Shop]:
    await add_sink(shop.server)
    yield shop
    key = ConfigKey("default", "events", "tests")
    await shop.server.services.configs.delete(key, author="test", origin=COMMAND)
    async with shop.server.services.database.connection() as conn:
        await conn.execute("delete from reported_events")


async def test_a_payment_is_reported_with_its_device_info(shop: Shop, buyer: Buyer) -> None:
    intent = (await shop.created(buyer, product_id="coins_100", device_info=DEVICE))["id"]
    assert await reported(shop.server, buyer.uid) == []
    await shop.pay(intent)
    await asyncio.gather(*(shop.get(buyer, intent) for _ in range(3)))
    assert await reported(shop.server, buyer.uid) == [
        {
            "user_id": buyer.uid,
            "kind": "charge",
            "platform": "cardpay",
            "config": "Default",
            "transaction_id": intent,
            "refund_id": None,
            "subscription_id": None,
            "product_id": "coins_100",
            "amount": 199,
            "currency": "USD",
            "device_info": DEVICE,
        }
    ]


async def test_a_payment_without_a_product_is_reported_too_and_a_declined_one_is_not(
    shop: Shop, buyer: Buyer
) -> None:
    declined = (await shop.created(buyer, amonut=500, currency="jpy"))["id"]
    await shop.pay(declined, card="pm_card_visa_chargeDeclined")
    await shop.get(buyer, declined)
    assert await reported(shop.server, buyer.uid) == []
    await shop.pay(declined)
    await shop.get(buyer, declined)
    [event] = await reported(shop.server, buyer.uid)
    assert (event["amount"], event["currency"], event["product_id"]) == (500, "JPY", None)


async def pay_dispute_and_refund(shop: Shop, buyer: Buyer, intent: str) -> None:
    """Pay with a card whose owner disputes the payment, win the dispute, and refund it. Wait for each report."""

    async def are(*kinds: str) -> None:
        async def equal() -> bool:
            return [kind for kind, _, _ in brief(await reported(shop.server, buyer.uid))] == [*kinds]

        await until(equal)

    async with working(shop.server.services):
        await shop.pay(intent, card="pm_card_createDispute")
        await are("charge", "refund")
        await shop.control("dispute", payment_intent=intent, status="won")
        await are("charge", "refund", "restored")
        await shop.platform("refunds", payment_intent=intent)
        await are("charge", "refund", "restored", "refund")
        await shop.stop_webhooks()


async def test_a_dispute_and_its_end_are_reported(shop: Shop, buyer: Buyer) -> None:
    await shop.send_webhooks()
    intent = (await shop.created(buyer, product_id="coins_100"))["id"]
    await pay_dispute_and_refund(shop, buyer, intent)
    _, dispute, restored, refund = await reported(shop.server, buyer.uid)
    assert dispute["refund_id"] == restored["refund_id"] != refund["refund_id"]
    assert {event["transaction_id"] for event in (dispute, restored, refund)} == {intent}
    assert {event["amount"] for event in (dispute, restored, refund)} == {199}


@pytest.mark.parametrize("amount", ["199", "150"])
async def test_reversals_of_a_payment_that_has_granted_nothing_are_reported(
    shop: Shop, buyer: Buyer, amount: str
) -> None:
    """It has no product, or the amount that was paid is not that of the order."""
    await shop.send_webhooks()
    product_id = None if amount == "199" else "coins_100"
    intent = (await shop.created(buyer, product_id=product_id))["id"]
    await shop.platform(f"payment_intents/{intent}", amount=amount)
    await pay_dispute_and_refund(shop, buyer, intent)
    events = await reported(shop.server, buyer.uid)
    assert {(event["transaction_id"], event["amount"], event["product_id"]) for event in events} == {
        (intent, int(amount), product_id)
    }
    assert await shop.assets(buyer) == {}


async def test_a_subscription_is_charged_and_renews(shop: Shop, buyer: Buyer) -> None:
    name = (await subscribed(shop, buyer))["cardpay_sub"]["id"]
    await shop.control("clock", by_s=int(timedelta(days=32).total_seconds()))
    at = rfc3339(shop.server.services.clock.now("default") + timedelta(days=32))
    assert (await ask(shop.server, "POST", "/dev/clock", json={"app": "default", "at": at}))[0] == 200
    buyer = await shop.back(buyer.device)
    for _ in range(2):
        await read(shop, buyer, name)
    purchases = await reported(shop.server, buyer.uid)
    assert [(event["kind"], event["amount"], event["subscription_id"]) for event in purchases] == [
        ("charge", 999, name), ("renewal", 999, name),
    ]  # fmt: skip
    assert len({event["transaction_id"] for event in purchases}) == 2
