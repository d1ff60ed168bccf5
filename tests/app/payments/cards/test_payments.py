"""Payments with a card that an app's server creates (§4.9)."""

from typing import Any

import pytest

from tests.app.payments.cards.shop import Buyer, Shop
from vendors.sandbox.faults import key_of

FAULTS = [
    "refuse", "unauthorized", "rate_limited", "out_of_quota", "server_error", "unavailable", "wrong_content_type",
    "redirect", "cut_mid_stream", "malformed_frame", "error_inside_200", "empty_answer",
]  # fmt: skip


async def test_a_payment_grants_its_product_once_it_is_paid(shop: Shop, buyer: Buyer) -> None:
    intent = await shop.created(buyer, product_id="coins_100", email="ada@example.com")
    assert intent["client_secret"].startswith(f"{intent['id']}_secret_")
    assert {name: intent[name] for name in ("status", "payment_method_id", "amount", "currency")} == {
        "status": "requires_payment_method", "payment_method_id": "", "amount": 199, "currency": "usd",
    }  # fmt: skip
    assert intent["customer_id"].startswith("cus_")
    status, answer = await shop.get(buyer, intent["id"])
    assert (status, answer) == (200, {"cardpay_payment_intent": intent, "assets": []})
    await shop.pay(intent["id"])
    for _ in range(2):
        status, answer = await shop.get(buyer, intent["id"])
        assert (status, answer["cardpay_payment_intent"]["status"]) == (200, "succeeded")
        [coins] = answer["assets"]
        assert (coins["quantity"], coins["receipt_id"], coins["origin"]) == (100, intent["id"], "purchase")
    [stored] = await shop.listed("payment_intents", customer=intent["customer_id"])
    assert (stored["receipt_email"], stored["metadata"]["uid"]) == ("ada@example.com", buyer.uid)


async def test_a_payment_without_a_product_grants_nothing(shop: Shop, buyer: Buyer) -> None:
    intent = await shop.created(buyer)
    await shop.pay(intent["id"])
    status, answer = await shop.get(buyer, intent["id"])
    assert (status, answer["cardpay_payment_intent"]["status"], answer["assets"]) == (200, "succeeded", [])


async def test_a_user_is_one_customer(shop: Shop, buyer: Buyer) -> None:
    customers = {(await shop.created(buyer))["customer_id"] for _ in range(2)}
    assert len(customers) == 1
    assert (await shop.created(await shop.buyer()))["customer_id"] not in customers


async def test_the_card_that_was_linked_last_is_charged_at_once(shop: Shop, buyer: Buyer) -> None:
    customer = (await shop.created(buyer))["customer_id"]
    await shop.link(customer)
    await shop.control("clock", by_s=60)
    newest = await shop.link(customer, "pm_card_mastercard")
    intent = await shop.created(buyer, with_customer_payment_method=True, product_id="coins_100")
    assert (intent["status"], intent["payment_method_id"]) == ("succeeded", newest)
    assert await shop.coins(buyer) == 100


@pytest.mark.parametrize("card", ["pm_card_chargeCustomerFail", "pm_card_authenticationRequired"])
async def test_a_declined_card_leaves_an_unfinished_payment(shop: Shop, buyer: Buyer, card: str) -> None:
    await shop.link((await shop.created(buyer))["customer_id"], card)
    intent = await shop.created(buyer, with_customer_payment_method=True, product_id="coins_100")
    assert (intent["status"], intent["payment_method_id"]) == ("requires_payment_method", "")
    assert await shop.coins(buyer) == 0
    await shop.pay(intent["id"])
    assert (await shop.get(buyer, intent["id"]))[1]["assets"][0]["quantity"] == 100


@pytest.mark.parametrize("option", ["with_customer_payment_method", "use_default_payment_method"])
async def test_a_user_without_a_card_gets_a_payment_without_one(shop: Shop, buyer: Buyer, option: str) -> None:
    intent = await shop.created(buyer, **{option: True})
    assert (intent["status"], intent["payment_method_id"]) == ("requires_payment_method", "")


async def test_the_default_card_waits_for_the_confirmation(shop: Shop, buyer: Buyer) -> None:
    customer = (await shop.created(buyer))["customer_id"]
    method = await shop.link(customer)
    await shop.platform(f"customers/{customer}", **{"invoice_settings[default_payment_method]": method})
    await shop.link(customer, "pm_card_mastercard")
    intent = await shop.created(buyer, use_default_payment_method=True)
    assert (intent["status"], intent["payment_method_id"]) == ("requires_confirmation", method)


async def test_a_repeated_request_charges_once(shop: Shop, buyer: Buyer) -> None:
    await shop.link((await shop.created(buyer))["customer_id"])
    body: dict[str, Any] = {"with_customer_payment_method": True, "product_id": "coins_100"}
    first, again = [await shop.create(buyer, key="order-1", **body) for _ in range(2)]
    assert first == again
    assert await shop.coins(buyer) == 100
    status, error = await shop.create(buyer, key="order-1", amonut=200)
    assert (status, error["error_type"]) == (409, "invalid_operation")


async def test_a_charge_whose_response_was_lost_is_found_by_the_repeated_request(shop: Shop, buyer: Buyer) -> None:
    customer = (await shop.created(buyer))["customer_id"]
    await shop.link(customer)
    body: dict[str, Any] = {"with_customer_payment_method": True, "product_id": "coins_100"}
    # The first call lists the cards, the second one charges the newest.
    await shop.configure(secret_key=key_of(name=buyer.uid, fault="cut_mid_stream", position=0, skip=1))
    status, error = await shop.create(buyer, key="order-2", **body)
    assert (status, error["error_type"]) == (400, "backend unavailable")
    assert await shop.coins(buyer) == 0
    await shop.configure()
    assert (await shop.create(buyer, key="order-2", **body))[1]["status"] == "succeeded"
    charged = [
        intent for intent in await shop.listed("payment_intents", customer=customer) if intent["amount_received"]
    ]
    assert len(charged) == 1
    assert await shop.coins(buyer) == 100


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"amonut": None}, "amonut is required"),
        ({"amonut": 0}, "amonut must be at least 1"),
        ({"amonut": 1.5}, "amonut must be an integer"),
        ({"amonut": "199"}, "amonut must be an integer"),
        ({"amonut": 100_000_000}, "amonut must be at most 99999999"),
        ({"amonut": 1}, "amonut is refused by the card platform (amount_too_small)"),
        ({"currency": None}, "currency is required"),
        ({"currency": "xyz"}, "currency must be the ISO 4217 code of a current currency, such as EUR"),
        ({"currency": "mga", "amonut": 501}, "amonut must be a whole number of MGA"),
        ({"currency": "kwd", "amonut": 1235}, "amonut must be a multiple of 10 in KWD"),
        ({"email": "nobody"}, "email must be an email address"),
        ({"device_info": "phone"}, "device_info must be an object"),
        ({"device_info": {"text": "x" * 8192}}, "device_info must have at most 8192 bytes"),
        ({"use_default_payment_method": 1}, "use_default_payment_method must be true or false"),
        ({"pay_platform_config_name": ""}, "pay_platform_config_name must not be empty"),
        ({"product_id": "pro_month"}, "product_id names a subscription, which is not bought by one payment"),
        ({"product_id": "coins_100", "amonut": 198}, "amonut is not the price of coins_100 in USD"),
        ({"product_id": "coins_100", "currency": "eur"}, "amonut is not the price of coins_100 in EUR"),
    ],
)
async def test_invalid_parameters_are_named(
    shop: Shop, buyer: Buyer, changes: dict[str, Any], message: str
) -> None:
    status, error = await shop.create(buyer, **changes)
    assert (status, error["message"]) == (400, f"invalid_parameter: {message}")


async def test_amount_is_accepted_where_amonut_is_absent(shop: Shop, buyer: Buyer) -> None:
    assert (await shop.created(buyer, amonut=None, amount=300))["amount"] == 300
    assert (await shop.created(buyer, amonut=400, amount=300))["amount"] == 400


async def test_device_info_is_stored_untouched_until_the_account_is_deactivated(shop: Shop, buyer: Buyer) -> None:
    device = {"model": "Pixel", "nested": {"list": [1, None, "x"]}}
    await shop.created(buyer, device_info=device, email="ada@example.com")

    async def details() -> list[tuple[Any, Any]]:
        async with shop.server.services.database.connection() as conn:
            rows = await conn.fetch("select email, device_info from card_payment_details where uid = $1", buyer.uid)
        return [tuple(row) for row in rows]

    assert await details() == [("ada@example.com", device)]
    for path in ("deactivate", "deactivate/confirm"):
        assert (await shop.client_call(buyer, "POST", f"/bp/user/me/{path}"))[0] == 200
    assert await details() == []


async def test_only_the_currencies_of_the_config_are_accepted(shop: Shop, buyer: Buyer) -> None:
    await shop.configure(currencies=["EUR", "USD"])
    assert (await shop.create(buyer, currency="EUR"))[0] == 200
    status, error = await shop.create(buyer, currency="gbp")
    assert (status, error["message"]) == (400, "invalid_parameter: currency must be one of EUR, USD")


async def test_a_missing_or_unusable_config_is_named(shop: Shop, buyer: Buyer) -> None:
    status, error = await shop.create(buyer, pay_platform_config_name="Other")
    assert (status, error["message"]) == (422, "config_invalid: cardpay Other does not exist")
    status, error = await shop.create(buyer, product_id="unknown")
    assert (status, error["message"]) == (422, "config_invalid: products unknown does not exist")
    intent = await shop.created(buyer)
    status, answer = await shop.get(buyer, intent["id"], pay_platform_config_name="Other")
    assert (status, answer["error"]["error_type"]) == (422, "config_invalid")


async def test_payments_of_others_and_of_other_configs_do_not_exist(shop: Shop, buyer: Buyer) -> None:
    intent = await shop.created(buyer)
    await shop.configure("Second")
    attempts = [
        await shop.get(await shop.buyer(), intent["id"]),
        await shop.get(buyer, intent["id"], pay_platform_config_name="Second"),
        await shop.get(buyer, "pi_unknown"),
    ]
    assert {(status, answer["error"]["error_type"]) for status, answer in attempts} == {(404, "item_not_found")}


@pytest.mark.parametrize("fault", FAULTS)
async def test_every_fault_of_the_platform_is_backend_unavailable(shop: Shop, buyer: Buyer, fault: str) -> None:
    intent = await shop.created(buyer)
    await shop.configure(secret_key=key_of(name=buyer.uid, fault=fault, retry_after_s=0.01, position=0))
    status, error = await shop.create(buyer)
    assert (status, error["error_type"]) == (400, "backend unavailable")
    assert "retryable" in error["extra"]
    status, answer = await shop.get(buyer, intent["id"])
    assert (status, answer["error"]["error_type"]) == (400, "backend unavailable")


async def test_payments_are_created_by_servers_for_users_that_exist(shop: Shop, buyer: Buyer) -> None:
    path, body = "/bp/server/user/{}/asset/cardpay_payment_intent", {"amonut": 199, "currency": "usd"}
    assert (await shop.client_call(buyer, "POST", path.format(buyer.uid), json=body))[0] == 401
    assert (await shop.server_call("POST", path.format("0" * 32), json=body))[0] == 404


async def test_what_was_sold_does_not_change_with_the_product(shop: Shop, buyer: Buyer) -> None:
    await shop.put("products", "gems", {
        "type": "consumable", "asset": "gems", "quantity": 5, "price": {"amount": 199, "currency": "USD"},
    })  # fmt: skip
    intent = await shop.created(buyer, product_id="gems")
    await shop.put("products", "gems", {"type": "consumable", "asset": "gems", "quantity": 1})
    await shop.pay(intent["id"])
    assert (await shop.get(buyer, intent["id"]))[1]["assets"][0]["quantity"] == 5
