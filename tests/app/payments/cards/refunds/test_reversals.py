"""Refunds and disputes of a part of a payment with a card, and when they happened.

The objects are `refund` and `dispute` of Stripe's OpenAPI: a dispute has an `amount` of its own.
"""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest

from storage.assets.differences import find_differences
from tests.app.payments.cards.shop import Buyer, Shop
from tests.app.payments.cards.sold import has_coins, paid
from tests.app.payments.cards.subscribers import origins, subscribed
from tests.calendar.clock import utc_now
from tests.waiting import until


@pytest.fixture(autouse=True)
async def _explained(shop: Shop) -> AsyncIterator[None]:
    yield
    assert [difference async for difference in find_differences(shop.server.services.database)] == []


async def dispute(shop: Shop, intent: str, status: str = "needs_response", amount: int | None = None) -> None:
    await shop.control("dispute", payment_intent=intent, status=status, amount=amount)


async def test_a_dispute_of_a_part_takes_its_part_of_the_units(selling: Shop, buyer: Buyer) -> None:
    intent = await paid(selling, buyer)
    await has_coins(selling, buyer, 100)
    await dispute(selling, intent, amount=100)
    await has_coins(selling, buyer, 50)
    await dispute(selling, intent, "lost")
    await selling.platform("refunds", payment_intent=intent, amount="99")
    await has_coins(selling, buyer, 0)
    assert await origins(selling, buyer) == ["purchase", "refund", "refund"]


async def test_a_dispute_of_a_part_that_is_won_gives_its_part_back(selling: Shop, buyer: Buyer) -> None:
    intent = await paid(selling, buyer)
    await has_coins(selling, buyer, 100)
    await dispute(selling, intent, amount=100)
    await has_coins(selling, buyer, 50)
    await dispute(selling, intent, "won")
    await has_coins(selling, buyer, 100)
    assert await origins(selling, buyer) == ["purchase", "refund", "restore"]


async def test_a_dispute_of_a_part_takes_nothing_of_a_subscription_until_the_rest_is_refunded(
    selling: Shop, buyer: Buyer
) -> None:
    await subscribed(selling, buyer)
    [intent] = [found["id"] for found in await selling.listed("payment_intents") if found["amount"] == 999]
    await dispute(selling, intent, amount=998)

    async def is_known() -> bool:
        async with selling.server.services.database.connection() as conn:
            return bool(await conn.fetch("select from payment_reversals where payment_id = $1", intent))

    await until(is_known)
    assert (await selling.assets(buyer))["pro"]["valid_seconds"] > 0
    await selling.platform("refunds", payment_intent=intent, amount="1")

    async def is_ended() -> bool:
        return bool((await selling.assets(buyer))["pro"]["valid_seconds"] == 0)

    await until(is_ended)
    assert await origins(selling, buyer) == ["purchase", "refund"]


async def test_a_dispute_that_is_lost_after_it_was_won_takes_again(selling: Shop, buyer: Buyer) -> None:
    intent = await paid(selling, buyer)
    await has_coins(selling, buyer, 100)
    for status, coins in (("needs_response", 0), ("won", 100), ("lost", 0), ("won", 100)):
        await dispute(selling, intent, status)
        await has_coins(selling, buyer, coins)
    assert await origins(selling, buyer) == ["purchase", "refund", "restore", "refund", "restore"]


@pytest.mark.parametrize("what", ["refund", "dispute"])
async def test_the_time_of_a_refund_is_that_of_the_platform(selling: Shop, buyer: Buyer, what: str) -> None:
    intent = await paid(selling, buyer)
    await has_coins(selling, buyer, 100)
    moved: int = (await selling.control("clock", by_s=7200))["now"]
    if what == "refund":
        await selling.platform("refunds", payment_intent=intent)
    else:
        await dispute(selling, intent)
    await has_coins(selling, buyer, 0)
    refunded_at = datetime.fromisoformat((await selling.assets(buyer))["coins"]["refund_time"])
    assert timedelta() <= refunded_at - datetime.fromtimestamp(moved, UTC) < timedelta(minutes=1)
    assert refunded_at > utc_now() + timedelta(hours=1)
