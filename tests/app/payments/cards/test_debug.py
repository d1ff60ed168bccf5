"""The debug endpoints, which pay with test cards (§4.9)."""

from typing import Any

import pytest

from tests.app.payments.cards.shop import CARD, Buyer, Shop
from tests.app.payments.cards.subscribers import subscribed
from tests.card_numbers import SENT, tables_with
from tests.running.another_server import another_server
from vendors.sandbox.faults import key_of

PAY = "/bp/asset/debug/cardpay_payment_intent/confirm"
SETUP = "/bp/asset/debug/cardpay_setup_intent/confirm"


async def confirm(shop: Shop, buyer: Buyer, intent: str, **body: Any) -> tuple[int, Any]:
    given = {"payment_intent_id": intent, **body}
    return await shop.client_call(buyer, "POST", PAY, json=given)


async def setup_intent(shop: Shop, buyer: Buyer) -> str:
    _, answer = await shop.client_call(buyer, "POST", "/bp/asset/cardpay_setup_intent", json={})
    name: str = answer["cardpay_setup_intent"]["id"]
    return name


async def test_a_test_card_pays_and_grants(shop: Shop, buyer: Buyer) -> None:
    intent = await shop.created(buyer, product_id="coins_100")
    status, answer = await confirm(shop, buyer, intent["id"], card=CARD, product_id="coins_100")
    assert (status, answer["cardpay_payment_intent"]["status"]) == (200, "succeeded")
    assert await shop.coins(buyer) == 100


async def test_a_payment_method_pays(shop: Shop, buyer: Buyer) -> None:
    intent = await shop.created(buyer)
    status, answer = await confirm(shop, buyer, intent["id"], payment_method_id="pm_card_visa")
    assert (status, answer["cardpay_payment_intent"]["status"]) == (200, "succeeded")
    status, answer = await confirm(shop, buyer, intent["id"], payment_method_id="pm_card_visa")
    assert (status, answer["error"]["error_type"]) == (400, "backend unavailable")


async def test_a_declined_card_leaves_the_intent(shop: Shop, buyer: Buyer) -> None:
    intent = await shop.created(buyer, product_id="coins_100")
    declined = {**CARD, "number": "4000000000000002"}
    status, answer = await confirm(shop, buyer, intent["id"], card=declined)
    assert (status, answer["cardpay_payment_intent"]["status"]) == (200, "requires_payment_method")
    body = {"setup_intent_id": await setup_intent(shop, buyer), "card": declined}
    status, answer = await shop.client_call(buyer, "POST", SETUP, json=body)
    assert (status, answer["cardpay_setup_intent"]["status"]) == (200, "requires_payment_method")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "body exactly one of card and payment_method_id is required"),
        ({"card": CARD, "payment_method_id": "pm_1"}, "body exactly one of card and payment_method_id is required"),
        ({"card": {**CARD, "number": "4111111111111111"}}, "card.number must be the number of a test card"),
        ({"card": {**CARD, "number": "4242"}}, "card.number must be the number of a test card"),
        ({"card": {**CARD, "exp_month": "13"}}, "card.exp_month must be a month, as digits"),
        ({"card": {**CARD, "exp_year": "40"}}, "card.exp_year must be a year, as four digits"),
        ({"card": {**CARD, "cvc": "x"}}, "card.cvc must consist of digits"),
        ({"card": {"number": CARD["number"]}}, "card.exp_month is required"),
    ],
)
async def test_invalid_cards_are_named_without_their_number(
    shop: Shop, buyer: Buyer, body: dict[str, Any], message: str
) -> None:
    intent = await shop.created(buyer)
    status, answer = await confirm(shop, buyer, intent["id"], **body)
    assert (status, answer["error"]["message"]) == (400, f"invalid_parameter: {message}")


async def test_what_belongs_to_others_does_not_exist(shop: Shop, buyer: Buyer) -> None:
    other = await shop.buyer()
    intent, setup = await shop.created(other), await setup_intent(shop, other)
    name = (await subscribed(shop, other))["cardpay_sub"]["id"]
    method = {"payment_method_name": "pm_card_visa", "config_name": "Default"}
    attempts = [
        await confirm(shop, buyer, intent["id"], card=CARD),
        await confirm(shop, buyer, "pi_unknown", card=CARD),
        await shop.client_call(buyer, "POST", SETUP, json={"setup_intent_id": setup, "card": CARD}),
        await shop.client_call(buyer, "POST", SETUP, json={"setup_intent_id": "seti_unknown", "card": CARD}),
        await shop.client_call(
            buyer, "POST", f"/bp/asset/debug/cardpay_sub/{name}/default_payment_method", json=method
        ),
    ]
    assert {(status, answer["error"]["error_type"]) for status, answer in attempts} == {(404, "item_not_found")}


async def test_the_default_payment_method_of_a_subscription(shop: Shop, buyer: Buyer) -> None:
    name = (await subscribed(shop, buyer))["cardpay_sub"]["id"]
    path = f"/bp/asset/debug/cardpay_sub/{name}/default_payment_method"

    async def set_method(method: str, config: str = "Default") -> tuple[int, Any]:
        body = {"payment_method_name": method, "config_name": config}
        status, answer = await shop.client_call(buyer, "POST", path, json=body)
        return status, answer["error"]["error_type"] if status != 200 else None

    assert await set_method("pm_card_mastercard") == (200, None)
    assert await set_method("pm_unknown") == (404, "item_not_found")
    assert await set_method("pm_card_visa_chargeDeclined") == (400, "invalid_operation")
    assert await set_method("pm_card_visa", "Other") == (400, "invalid_parameter")
    await shop.configure(secret_key=key_of(fault="unavailable", retry_after_s=0.01))
    assert await set_method("pm_card_visa") == (400, "backend unavailable")


async def test_production_does_not_tell_why_a_config_cannot_be_used(shop: Shop, buyer: Buyer) -> None:
    path = "/bp/asset/debug/cardpay_sub/sub_1/default_payment_method"
    body = {"payment_method_name": "pm_card_visa", "config_name": "Other"}
    async with another_server(shop.server.services.settings, env="production") as production:
        status, answer = await Shop(production, shop.sandbox).client_call(buyer, "POST", path, json=body)
    hidden = "a config of this app cannot be used; its operator can read why in the log"
    assert (status, answer["error"]["message"]) == (400, f"invalid_parameter: config_name: {hidden}")


async def test_debug_endpoints_do_not_exist_without_debug(shop: Shop, buyer: Buyer) -> None:
    intent, setup = await shop.created(buyer), await setup_intent(shop, buyer)
    name = (await subscribed(shop, buyer))["cardpay_sub"]["id"]
    sub = f"/bp/asset/debug/cardpay_sub/{name}/default_payment_method"
    _, answer = await shop.client_call(buyer, "POST", PAY, json={})
    assert answer["error"]["error_type"] == "invalid_parameter"
    await shop.configure(debug=False)
    method = {"payment_method_name": "pm_card_visa", "config_name": "Default"}
    attempts = [
        await confirm(shop, buyer, intent["id"], card=CARD),
        await shop.client_call(buyer, "POST", SETUP, json={"setup_intent_id": setup, "card": CARD}),
        await shop.client_call(buyer, "POST", sub, json=method),
        *[await shop.client_call(buyer, "POST", path, json={}) for path in (PAY, SETUP, sub)],
        await shop.client_call(buyer, "POST", sub, json={**method, "config_name": "unknown"}),
        await confirm(shop, buyer, intent["id"], card=CARD, product_id="unknown"),
    ]
    assert {(status, answer["error"]["error_type"]) for status, answer in attempts} == {(404, "not_found")}


@pytest.mark.parametrize("fault", ["refuse", "server_error", "unavailable", "redirect", "malformed_frame"])
async def test_faults_of_the_platform_are_backend_unavailable(shop: Shop, buyer: Buyer, fault: str) -> None:
    intent, setup = await shop.created(buyer), await setup_intent(shop, buyer)
    await shop.configure(secret_key=key_of(name=buyer.uid, fault=fault, retry_after_s=0.01))
    attempts = [
        await confirm(shop, buyer, intent["id"], card=CARD),
        await shop.client_call(buyer, "POST", SETUP, json={"setup_intent_id": setup, "card": CARD}),
    ]
    assert {(status, answer["error"]["error_type"]) for status, answer in attempts} == {
        (400, "backend unavailable")
    }


async def test_unknown_products_have_no_config(shop: Shop, buyer: Buyer) -> None:
    intent = await shop.created(buyer)
    status, answer = await confirm(shop, buyer, intent["id"], card=CARD, product_id="unknown")
    assert (status, answer["error"]["error_type"]) == (422, "config_invalid")


async def test_numbers_of_cards_are_in_no_table(shop: Shop, buyer: Buyer) -> None:
    for number in (CARD["number"], "4000000000000002"):
        intent = await shop.created(buyer)
        key = {"Idempotency-Key": f"pay-{number[-4:]}"}
        body = {"payment_intent_id": intent["id"], "card": {**CARD, "number": number}}
        assert (await shop.client_call(buyer, "POST", PAY, json=body, headers=key))[0] == 200
    assert {CARD["number"], "4000000000000002"} <= SENT
    async with shop.server.services.database.connection() as conn:
        assert await tables_with(conn, SENT) == []
