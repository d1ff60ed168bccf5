"""Open invoices of subscriptions, which another card pays."""

import asyncio

from tests.app.payments.cards.shop import Buyer, Shop
from tests.app.payments.cards.subscribers import REFUSED, later, origins, read, setup, subscribe, subscribed


async def test_another_card_pays_what_the_first_has_not(shop: Shop, buyer: Buyer) -> None:
    answer = await subscribed(shop, buyer, setup_intent_id=await setup(shop, buyer, number="4000000000000341"))
    assert answer["cardpay_sub"]["status"] == "incomplete"
    declined = await shop.platform("payment_methods", **REFUSED)
    failing = await shop.link(answer["cardpay_sub"]["customer_id"], "pm_card_chargeCustomerFail")
    for card in (declined["id"], failing):
        again = await subscribed(shop, buyer, payment_method_id=card)
        assert (again["cardpay_sub"]["status"], again["assets"]) == ("incomplete", [])
    name = await setup(shop, buyer)
    answers = await asyncio.gather(*(subscribed(shop, buyer, setup_intent_id=name) for _ in range(6)))
    assert {paid["cardpay_sub"]["id"] for paid in answers} == {answer["cardpay_sub"]["id"]}
    assert await origins(shop, buyer) == ["purchase"]
    paid = await read(shop, buyer, answer["cardpay_sub"]["id"])
    assert (paid["cardpay_sub"]["status"], "latest_payment_intent" in paid["cardpay_sub"]) == ("active", False)


async def test_another_card_pays_a_renewal_and_the_next(shop: Shop, buyer: Buyer) -> None:
    answer = await subscribed(shop, buyer)
    subscription = answer["cardpay_sub"]
    failing = await shop.link(subscription["customer_id"], "pm_card_chargeCustomerFail")
    await shop.platform(f"subscriptions/{subscription['id']}", default_payment_method=failing)
    buyer = await later(shop, buyer, days=32)
    assert (await read(shop, buyer, subscription["id"]))["cardpay_sub"]["status"] == "past_due"
    card = await shop.link(subscription["customer_id"])
    assert (await subscribed(shop, buyer, payment_method_id=card))["cardpay_sub"]["status"] == "active"
    assert (await shop.created(buyer, use_default_payment_method=True))["payment_method_id"] == card
    buyer = await later(shop, buyer, days=31)
    assert (await read(shop, buyer, subscription["id"]))["cardpay_sub"]["status"] == "active"
    assert await origins(shop, buyer) == ["purchase", "extend", "renewal", "renewal"]


async def test_a_card_whose_owner_is_being_asked_is_not_asked_again(shop: Shop, buyer: Buyer) -> None:
    await subscribe(shop, buyer)
    card = await shop.platform("payment_methods", **{**REFUSED, "card[number]": "4000000000003220"})
    answers = [await subscribed(shop, buyer, payment_method_id=card["id"]) for _ in range(2)]
    intents = [answer["cardpay_sub"]["latest_payment_intent"] for answer in answers]
    assert [intent["status"] for intent in intents] == ["requires_action"] * 2
    events = await shop.listed("events", type="payment_intent.requires_action")
    asked = [event for event in events if event["data"]["object"]["id"] == intents[0]["id"]]
    assert len(asked) == 1
