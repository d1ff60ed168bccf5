"""Users whose customer was deleted at the platform become another customer when they pay next."""

from typing import Any

import pytest

from tests.app.payments.cards.shop import Buyer, Shop
from tests.app.payments.cards.subscribers import read, setup, subscribe, subscribed


async def deleted(shop: Shop, customer: str) -> None:
    url = f"{shop.sandbox.url}/stripe/v1/customers/{customer}"
    async with shop.server.http.delete(url, headers={"Authorization": "Bearer sandbox"}) as response:
        assert (await response.json()) == {"id": customer, "object": "customer", "deleted": True}


@pytest.mark.parametrize(
    "options", [{}, {"use_default_payment_method": True}, {"with_customer_payment_method": True}], ids=str
)
async def test_a_payment_is_created_for_another_customer(shop: Shop, buyer: Buyer, options: dict[str, Any]) -> None:
    customer = (await shop.created(buyer))["customer_id"]
    await shop.link(customer)
    await deleted(shop, customer)
    intents = [await shop.created(buyer, **options, product_id="coins_100") for _ in range(2)]
    assert {intent["customer_id"] for intent in intents} - {customer} == {intents[0]["customer_id"]}
    assert {intent["status"] for intent in intents} == {"requires_payment_method"}
    await shop.pay(intents[0]["id"])
    await shop.get(buyer, intents[0]["id"])
    assert await shop.coins(buyer) == 100


async def test_a_request_with_a_key_is_repeated_for_the_same_payment(shop: Shop, buyer: Buyer) -> None:
    await deleted(shop, (await shop.created(buyer))["customer_id"])
    first = await shop.create(buyer, key=buyer.uid)
    assert await shop.create(buyer, key=buyer.uid) == first
    assert first[0] == 200


async def test_a_card_is_linked_to_another_customer_and_pays_a_subscription(shop: Shop, buyer: Buyer) -> None:
    first = (await subscribed(shop, buyer))["cardpay_sub"]
    await deleted(shop, first["customer_id"])
    assert (await read(shop, buyer, first["id"]))["cardpay_sub"]["status"] == "canceled"
    again = (await subscribed(shop, buyer, setup_intent_id=await setup(shop, buyer)))["cardpay_sub"]
    assert again["id"] != first["id"]
    assert (again["status"], again["customer_id"] != first["customer_id"]) == ("active", True)


async def test_a_subscription_is_created_for_another_customer(shop: Shop, buyer: Buyer) -> None:
    customer = (await shop.created(buyer))["customer_id"]
    await deleted(shop, customer)
    method = await shop.platform("payment_methods", **{
        "type": "card", "card[number]": "4242424242424242", "card[exp_month]": "12", "card[exp_year]": "2040",
    })  # fmt: skip
    for body in ({}, {"payment_method_id": method["id"]}):
        status, answer = await subscribe(shop, buyer, **body)
        assert (status, answer["cardpay_sub"]["customer_id"] != customer) == (200, True)
    assert answer["cardpay_sub"]["status"] == "active"


async def test_a_card_of_the_deleted_customer_is_not_found(shop: Shop, buyer: Buyer) -> None:
    name = await setup(shop, buyer)
    customer = (await shop.created(buyer))["customer_id"]
    await deleted(shop, customer)
    assert (await shop.created(buyer))["customer_id"] != customer
    assert (await subscribe(shop, buyer, setup_intent_id=name))[0] == 404
