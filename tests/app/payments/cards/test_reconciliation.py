"""What no webhook has reported is found: payments, renewals and refunds, also after a crash or a lost response."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest

from streams.wire.codec import rfc3339
from tests.app.callers import ask, working
from tests.app.operators import Operator
from tests.app.payments.cards.shop import Buyer, Shop
from tests.app.payments.cards.subscribers import cancelled, setup, subscribe, subscribed
from tests.calendar.clock import utc_now
from tests.waiting import until
from vendors.sandbox.faults import key_of


@asynccontextmanager
async def reconciling(shop: Shop, *, minutes: float = 3) -> AsyncIterator[None]:
    """Let time pass for the app, and run the jobs of the schedule in the block."""
    async with working(shop.server.services):
        await pass_time(shop, minutes=minutes)
        yield


async def pass_time(shop: Shop, *, minutes: float = 3) -> None:
    clock = shop.server.services.clock
    at = utc_now() + timedelta(seconds=clock.offset_s("default"), minutes=minutes)
    body = {"app": "default", "at": rfc3339(at)}
    assert (await ask(shop.server, "POST", "/dev/clock", json=body))[0] == 200


async def entries(shop: Shop, buyer: Buyer) -> list[tuple[str, str]]:
    async with shop.server.services.database.connection() as conn:
        rows = await conn.fetch(
            "select kind, channel from asset_entries where uid = $1 order by entry_id", buyer.uid
        )
    return [(row["kind"], row["channel"]) for row in rows]


async def entered(shop: Shop, buyer: Buyer, *kinds: str) -> None:
    """Wait until the reconciliation has entered these events of the user."""

    async def equal() -> bool:
        return await entries(shop, buyer) == [(kind, "reconciliation") for kind in kinds]

    await until(equal, within_s=15)


async def statuses(shop: Shop, buyer: Buyer, table: str = "card_payments") -> list[str]:
    async with shop.server.services.database.connection() as conn:
        rows = await conn.fetch(f"select status from {table} where uid = $1 order by 1", buyer.uid)
    return [row["status"] for row in rows]


async def test_a_payment_without_a_webhook_is_granted(shop: Shop, buyer: Buyer) -> None:
    intent = await shop.created(buyer, product_id="coins_100")
    await shop.pay(intent["id"])
    async with reconciling(shop):
        await entered(shop, buyer, "grant")
    assert await shop.coins(buyer) == 100


async def test_a_refund_without_a_webhook_is_found_in_the_list_of_events(shop: Shop, buyer: Buyer) -> None:
    intent = await shop.created(buyer, product_id="coins_100")
    await shop.pay(intent["id"])
    async with reconciling(shop):
        await entered(shop, buyer, "grant")
        await shop.platform("refunds", payment_intent=intent["id"])
        await pass_time(shop)
        await entered(shop, buyer, "grant", "refund")
    reported = await report(shop)
    assert ("missed_event", "charge.refunded") in [(mismatch["kind"], mismatch["detail"]) for mismatch in reported]
    assert {mismatch["platform"] for mismatch in reported} == {"cardpay"}
    assert [mismatch["detail"] for mismatch in reported if mismatch["kind"] == "missed_entry"] == [
        "refund",
        "grant",
    ]


async def test_an_event_that_cannot_be_read_is_reported_and_hides_no_other(shop: Shop, buyer: Buyer) -> None:
    intent = await shop.created(buyer, product_id="coins_100")
    await shop.pay(intent["id"])
    unreadable = [{"id": "evt_1", "type": "invoice.paid", "created": None, "data": None}, None]
    await shop.control("list_garbage", events=unreadable)
    async with reconciling(shop):
        await entered(shop, buyer, "grant")
        await shop.platform("refunds", payment_intent=intent["id"])
        await pass_time(shop)
        await entered(shop, buyer, "grant", "refund")
    await shop.control("list_garbage", events=[])
    reported = [mismatch for mismatch in await report(shop) if mismatch["kind"] == "unreadable_event"]
    assert sorted(mismatch["subject"][:6] for mismatch in reported) == ["evt_1", "sha256"]


async def report(shop: Shop) -> list[dict[str, Any]]:
    """The mismatches, the newest first."""
    found = await Operator(shop.server)("GET", "payments/mismatches?app=default&size=100")
    assert found.status == 200, found.body
    mismatches: list[dict[str, Any]] = found.body["mismatches"]
    return mismatches


@pytest.mark.parametrize("product_id", ["coins_100", None])
async def test_a_paid_amount_that_is_not_that_of_the_order_is_a_mismatch(
    shop: Shop, buyer: Buyer, product_id: str | None
) -> None:
    intent = (await shop.created(buyer, product_id=product_id))["id"]
    await shop.platform(f"payment_intents/{intent}", amount="150")
    await shop.pay(intent)
    for _ in range(2):
        _, answer = await shop.get(buyer, intent)
    assert (answer["cardpay_payment_intent"]["status"], answer["assets"]) == ("succeeded", [])
    [found] = [mismatch for mismatch in await report(shop) if mismatch["subject"] == intent]
    assert (found["kind"], found["platform"]) == ("amount_differs", "cardpay")
    assert found["detail"] == "1.50 USD were paid instead of 1.99 USD"


async def test_a_late_payment_is_found_in_the_list_of_events(shop: Shop, buyer: Buyer) -> None:
    intent = await shop.created(buyer, product_id="coins_100")
    await pass_time(shop, minutes=5 * 24 * 60)
    await shop.pay(intent["id"])
    async with reconciling(shop):
        await entered(shop, buyer, "grant")


async def test_a_charge_whose_response_was_lost_is_granted_without_a_repeat(shop: Shop, buyer: Buyer) -> None:
    await shop.link((await shop.created(buyer))["customer_id"])
    await shop.configure(secret_key=key_of(name=buyer.uid, fault="cut_mid_stream", position=0, skip=1, times=1))
    status, _ = await shop.create(buyer, with_customer_payment_method=True, product_id="coins_100")
    assert status == 400
    assert await statuses(shop, buyer) == ["new", "requires_payment_method"]
    async with reconciling(shop):
        await entered(shop, buyer, "grant")
    assert await statuses(shop, buyer) == ["requires_payment_method", "succeeded"]


async def test_a_call_that_has_not_arrived_is_abandoned_and_can_be_repeated(shop: Shop, buyer: Buyer) -> None:
    await shop.link((await shop.created(buyer))["customer_id"])
    await shop.configure(secret_key=key_of(name=buyer.uid, fault="refuse", skip=1, times=3))
    body: dict[str, Any] = {"with_customer_payment_method": True, "product_id": "coins_100"}
    assert (await shop.create(buyer, key="k", **body))[0] == 400

    async def abandoned() -> bool:
        return "abandoned" in await statuses(shop, buyer)

    async with reconciling(shop):
        await until(abandoned, within_s=15)
    assert (await shop.create(buyer, key="k", **body))[1]["status"] == "succeeded"
    assert await shop.coins(buyer) == 100


async def test_a_renewal_without_a_webhook_is_granted(shop: Shop, buyer: Buyer) -> None:
    await subscribed(shop, buyer)

    async def renewed() -> bool:
        return await entries(shop, buyer) == [("grant", "client"), ("grant", "reconciliation")]

    async with reconciling(shop, minutes=32 * 24 * 60):
        await until(renewed, within_s=15)
    buyer = await shop.back(buyer.device)
    assert (await shop.assets(buyer))["pro"]["valid_seconds"] > 0


async def test_a_subscription_whose_response_was_lost_is_linked(shop: Shop, buyer: Buyer) -> None:
    name = await setup(shop, buyer)
    await shop.configure(secret_key=key_of(name=buyer.uid, fault="cut_mid_stream", position=0, skip=2, times=1))
    assert (await subscribe(shop, buyer, setup_intent_id=name))[0] == 400
    async with reconciling(shop):
        await entered(shop, buyer, "grant")
    assert await statuses(shop, buyer, "card_subscriptions") == ["active"]


async def test_a_subscription_that_was_not_created_is_abandoned(shop: Shop, buyer: Buyer) -> None:
    name = await setup(shop, buyer)
    await shop.configure(secret_key=key_of(name=buyer.uid, fault="refuse", skip=1, times=3))
    assert (await subscribe(shop, buyer, setup_intent_id=name))[0] == 400

    async def abandoned() -> bool:
        return await statuses(shop, buyer, "card_subscriptions") == ["abandoned"]

    async with reconciling(shop):
        await until(abandoned, within_s=15)
    assert (await subscribed(shop, buyer, setup_intent_id=name))["cardpay_sub"]["status"] == "active"


async def test_a_cancellation_at_the_platform_is_found(shop: Shop, buyer: Buyer) -> None:
    name = (await subscribed(shop, buyer))["cardpay_sub"]["id"]
    await shop.platform(f"subscriptions/{name}", cancel_at_period_end="true")

    async def was_cancelled() -> bool:
        return bool((await shop.assets(buyer))["pro"]["sub_canceled"])

    async with reconciling(shop):
        await until(was_cancelled, within_s=15)
    assert (await cancelled(shop, buyer, name))["cardpay_sub"]["status"] == "active"


async def test_a_platform_that_fails_is_asked_again(shop: Shop, buyer: Buyer) -> None:
    intent = await shop.created(buyer, product_id="coins_100")
    await shop.pay(intent["id"])
    await shop.configure(secret_key=key_of(name=buyer.uid, fault="server_error"))

    async def asked() -> bool:
        return any(call.fault == "server_error" for call in shop.sandbox.bill.since(0))

    async with reconciling(shop):
        await until(asked, within_s=15)
        assert await entries(shop, buyer) == []
        await shop.configure()
        await pass_time(shop)
        await entered(shop, buyer, "grant")
    async with shop.server.services.database.connection() as conn:
        held = "select count(*) from procrastinate_jobs where status = 'failed'"
        assert await conn.fetchval(held) == 0


async def test_events_that_have_arrived_are_not_worked_on_again(shop: Shop, buyer: Buyer) -> None:
    await shop.send_webhooks()
    intent = await shop.created(buyer, product_id="coins_100")
    await shop.pay(intent["id"])

    async def granted() -> bool:
        return await entries(shop, buyer) == [("grant", "webhook")]

    async def refunded() -> bool:
        return await entries(shop, buyer) == [("grant", "webhook"), ("refund", "reconciliation")]

    async with working(shop.server.services):
        await until(granted, within_s=15)
    await shop.stop_webhooks()
    await shop.platform("refunds", payment_intent=intent["id"])
    async with reconciling(shop):
        await until(refunded, within_s=15)
    assert intent["id"] not in [mismatch["subject"].removeprefix("card:") for mismatch in await report(shop)]
    async with shop.server.services.database.connection() as conn:
        text = "convert_from(body, 'UTF8')"
        stored = await conn.fetchval(
            f"select count(*) from webhooks where {text} like $1 and {text} like '%payment_intent.succeeded%'",
            f"%{intent['id']}%",
        )
    assert stored == 1
