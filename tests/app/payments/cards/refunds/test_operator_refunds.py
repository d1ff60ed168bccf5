"""An operator refunds payments with a card: each exactly once, and with the effects of a reported refund."""

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from storage.assets.differences import find_differences
from streams.wire.codec import rfc3339
from tests.app.callers import ask, work_off
from tests.app.operators import AdminResponse, Operator
from tests.app.payments.cards.shop import Buyer, Shop
from tests.app.payments.cards.sold import entries, has_coins, paid
from tests.app.payments.cards.subscribers import origins, subscribed
from tests.calendar.clock import utc_now
from tests.waiting import until
from vendors.sandbox.faults import key_of

_BEFORE = 4
"""The calls that read a payment before it is refunded."""


@pytest.fixture(autouse=True)
async def _explained(shop: Shop) -> AsyncIterator[None]:
    yield
    assert [difference async for difference in find_differences(shop.server.services.database)] == []


async def bought(shop: Shop, buyer: Buyer) -> str:
    """Buy coins without a webhook."""
    intent = await paid(shop, buyer)
    assert (await shop.get(buyer, intent, sync="true"))[0] == 200
    await has_coins(shop, buyer, 100)
    return intent


async def refund(
    shop: Shop, buyer: Buyer, order: str, body: dict[str, Any] | None = None, *, key: str | None = None
) -> AdminResponse:
    path = f"users/default/{buyer.uid}/orders/{order}/refund"
    headers = {"X-Parley-Reason": "Asked for it", "Idempotency-Key": key or uuid4().hex}
    return await Operator(shop.server)("POST", path, body or {}, **headers)


async def made(shop: Shop, intent: str) -> list[int]:
    return [refund["amount"] for refund in await shop.listed("refunds", payment_intent=intent)]


async def lose_answer(shop: Shop, name: str) -> None:
    key = key_of(name=name, fault="cut_mid_stream", position=0, skip=_BEFORE, times=1)
    await shop.configure(secret_key=key)


async def run_jobs(shop: Shop) -> None:
    """Run the jobs that wait, also those for later."""
    async with shop.server.services.database.connection() as conn:
        await conn.execute("update procrastinate_jobs set scheduled_at = null where status = 'todo'")
    await work_off(shop.server.services)


async def test_parts_take_nothing_until_all_is_refunded(shop: Shop, buyer: Buyer) -> None:
    intent = await bought(shop, buyer)
    answer = await refund(shop, buyer, intent, {"amount": 100})
    assert (answer.status, answer.body["state"], answer.body["amount"]) == (200, "made", 100), answer.body
    assert await shop.coins(buyer) == 100
    too_much = await refund(shop, buyer, intent, {"amount": 100})
    assert too_much.error == (
        400, "invalid_parameter: amount must be at most 99, which is what is left of the payment",
    )  # fmt: skip
    assert (await refund(shop, buyer, intent)).body["amount"] == 99
    assert (await shop.coins(buyer), sorted(await made(shop, intent))) == (0, [99, 100])
    assert (await refund(shop, buyer, intent)).status == 409


async def test_a_repeated_key_and_two_operators_at_once_refund_once(shop: Shop, buyer: Buyer) -> None:
    intent = await bought(shop, buyer)
    answers = await asyncio.gather(
        *(refund(shop, buyer, intent, {"amount": 150}, key=key) for key in ("one", "one", "two"))
    )
    assert {answer.status for answer in answers} == {200, 400}
    again = [await refund(shop, buyer, intent, {"amount": 150}, key=key) for key in ("one", "two")]
    assert sorted(answer.status for answer in again) == [200, 400]
    assert await made(shop, intent) == [150]


@pytest.mark.parametrize("hours", [0, 25])
async def test_a_refund_whose_answer_is_lost_is_made_once_by_the_job(shop: Shop, buyer: Buyer, hours: int) -> None:
    intent = await bought(shop, buyer)
    await lose_answer(shop, f"lost-{hours}")
    answer = await refund(shop, buyer, intent, {"amount": 100})
    assert (answer.status, answer.body["state"]) == (200, "pending"), answer.body
    await shop.configure()
    if hours:  # The platform has forgotten the key.
        at = rfc3339(utc_now() + timedelta(hours=hours))
        assert (await ask(shop.server, "POST", "/dev/clock", json={"app": "default", "at": at}))[0] == 200
    await run_jobs(shop)
    assert await made(shop, intent) == [100]
    again = await refund(shop, buyer, intent)
    assert (again.body["amount"], sorted(await made(shop, intent))) == (99, [99, 100])


async def test_a_webhook_before_the_answer_counts_once(shop: Shop, buyer: Buyer) -> None:
    intent = await bought(shop, buyer)
    await shop.send_webhooks()
    await lose_answer(shop, "early")
    answer = await refund(shop, buyer, intent, key="early")
    assert (answer.status, answer.body["state"]) == (200, "pending"), answer.body
    await shop.configure()
    await until(lambda: shop.sandbox.sandbox.deliveries.is_idle)
    await work_off(shop.server.services)
    assert await shop.coins(buyer) == 0
    assert (await refund(shop, buyer, intent, key="early")).body["state"] == "made"
    assert [kind for kind, _ in await entries(shop, buyer)] == ["grant", "refund"]
    assert await made(shop, intent) == [199]


async def test_the_period_of_a_subscription_is_refunded_and_ends(selling: Shop, buyer: Buyer) -> None:
    sub = (await subscribed(selling, buyer))["cardpay_sub"]["id"]
    answer = await refund(selling, buyer, sub)
    assert (answer.status, answer.body["state"], answer.body["amount"]) == (200, "made", 999), answer.body
    assert (await selling.assets(buyer))["pro"]["valid_seconds"] == 0
    await until(lambda: selling.sandbox.sandbox.deliveries.is_idle)
    assert await origins(selling, buyer) == ["purchase", "refund"]


async def test_what_cannot_be_refunded_says_why(shop: Shop, buyer: Buyer) -> None:
    intent = (await shop.created(buyer, product_id="coins_100"))["id"]
    assert (await refund(shop, buyer, intent)).error == (409, "invalid_operation: the order was not paid")
    assert (await refund(shop, buyer, "none")).status == 404
    intent = await bought(shop, buyer)
    await shop.configure(secret_key=key_of(name="no", fault="out_of_quota", skip=_BEFORE, times=1))
    refused = await refund(shop, buyer, intent)
    assert refused.error == (
        409, "invalid_operation: the platform has refused the refund: more_permissions_required",
    )  # fmt: skip


async def test_a_dispute_is_listed_with_its_deadline(shop: Shop, buyer: Buyer) -> None:
    intent = await bought(shop, buyer)
    operator = Operator(shop.server)
    for status, state in (("needs_response", "open"), ("lost", "lost"), ("won", "won")):
        await shop.control("dispute", payment_intent=intent, status=status, amount=100)
        found = await operator("GET", f"users/default/{buyer.uid}/orders/{intent}/refund")
        assert (found.status, found.body["left"]) == (200, 199 if state == "won" else 99)
        listed = (await operator("GET", f"payments/disputes?platform=cardpay&state={state}")).body["disputes"]
        [dispute] = [each for each in listed if each["payment_id"] == intent]
        assert (dispute["order_id"], dispute["user_id"], dispute["status"]) == (intent, buyer.uid, status)
        opened, due = (datetime.fromisoformat(dispute[name]) for name in ("opened_at", "evidence_due_at"))
        assert due - opened == timedelta(days=7)
