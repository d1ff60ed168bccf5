"""Requests of one user at the same time subscribe once."""

import asyncio

from tests.app.payments.cards.shop import CARD, Buyer, Shop
from tests.app.payments.cards.subscribers import setup, subscribe
from tests.waiting import until

SLOW = "sandbox,delay_ms=300"


async def card(shop: Shop) -> str:
    """A card that is not linked yet."""
    method = await shop.platform("payment_methods", **{
        "type": "card", "card[number]": CARD["number"], "card[exp_month]": "12", "card[exp_year]": "2040",
    })  # fmt: skip
    name: str = method["id"]
    return name


async def has_begun(shop: Shop, buyer: Buyer) -> bool:
    """Return whether a subscription is stored of which the platform does not know yet."""
    async with shop.server.services.database.connection() as conn:
        return bool(await conn.fetchval("select true from card_subscriptions where uid = $1", buyer.uid))


async def customer_of(shop: Shop, buyer: Buyer) -> str:
    customer: str = (await shop.created(buyer))["customer_id"]
    return customer


async def test_a_card_that_does_not_exist_does_not_let_the_next_request_subscribe_twice(
    shop: Shop, buyer: Buyer
) -> None:
    customer, first, third = await customer_of(shop, buyer), await card(shop), await card(shop)
    await shop.configure(secret_key=SLOW)
    async with asyncio.TaskGroup() as group:
        slow = group.create_task(subscribe(shop, buyer, payment_method_id=first))
        await until(lambda: has_begun(shop, buyer))
        refused = await subscribe(shop, buyer, payment_method_id="pm_unknown")
        assert not slow.done()
        again = await subscribe(shop, buyer, payment_method_id=third)
    await shop.configure()

    assert (refused[0], again[0], slow.result()[0]) == (404, 200, 200)
    subscriptions = await shop.listed("subscriptions", customer=customer, status="all")
    assert [sub["status"] for sub in subscriptions] == ["active"]
    ids = {answer["cardpay_sub"]["id"] for _, answer in (again, slow.result())}
    assert ids == {sub["id"] for sub in subscriptions}


async def test_requests_with_different_cards_subscribe_once(shop: Shop, buyer: Buyer) -> None:
    customer, cards = await customer_of(shop, buyer), [await card(shop) for _ in range(3)]
    await shop.configure(secret_key=SLOW)
    answers = await asyncio.gather(*(subscribe(shop, buyer, payment_method_id=card_id) for card_id in cards))
    await shop.configure()

    assert {status for status, _ in answers} == {200}
    assert len(await shop.listed("subscriptions", customer=customer, status="all")) == 1
    assert len({answer["cardpay_sub"]["id"] for _, answer in answers}) == 1


async def test_a_user_whose_card_does_not_exist_can_leave(shop: Shop, buyer: Buyer) -> None:
    assert (await subscribe(shop, buyer, payment_method_id="pm_unknown"))[0] == 404
    assert (await shop.client_call(buyer, "POST", "/bp/user/me/deactivate", json={}))[0] == 200


async def test_a_subscription_stays_with_the_config_that_has_sold_it(shop: Shop, buyer: Buyer) -> None:
    status, begun = await subscribe(shop, buyer, setup_intent_id=await setup(shop, buyer))
    assert status == 200
    await shop.configure("Other", base_url="http://127.0.0.1:9")
    product = {"type": "subscription", "asset": "pro", "period": "P1M"}
    await shop.put("products", "pro_month", {**product, "cardpay": {"config": "Other", "price_id": "price_new"}})
    try:
        status, again = await subscribe(shop, buyer)
    finally:
        await shop.put("products", "pro_month", {**product, "cardpay": {"price_id": "price_pro_month"}})
    assert (status, again["cardpay_sub"]) == (200, begun["cardpay_sub"])
