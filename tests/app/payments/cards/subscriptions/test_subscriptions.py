"""Subscriptions with a card: created, renewed, cancelled, refunded."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from streams.wire.codec import from_rfc3339
from tests.app.callers import working
from tests.app.operators import Operator
from tests.app.payments.cards.shop import CARD, Buyer, Shop
from tests.app.payments.cards.subscribers import (
    REFUSED,
    cancelled,
    later,
    move_to,
    origins,
    read,
    setup,
    subscribe,
    subscribed,
)
from tests.waiting import until
from vendors.sandbox.faults import key_of

FAULTS = ["refuse", "unauthorized", "rate_limited", "server_error", "unavailable", "redirect", "malformed_frame"]


async def test_a_subscription_grants_the_period_that_is_paid(shop: Shop, buyer: Buyer) -> None:
    buyer = await move_to(shop, buyer, "2027-01-31T12:00:00Z")
    answer = await subscribed(shop, buyer)
    subscription, [pro] = answer["cardpay_sub"], answer["assets"]
    expected = {"status": "active", "product_id": "price_pro_month", "bp_product_id": "pro_month", "canceled_ts": 0}
    assert {name: subscription[name] for name in expected} == expected
    assert subscription["id"].startswith("sub_")
    assert "latest_payment_intent" not in subscription
    end = from_rfc3339(pro["expire_time"]) - timedelta(days=1)  # It lasts a day longer, because it renews.
    assert abs(end - from_rfc3339("2027-02-28T12:00:00Z")) < timedelta(minutes=1)
    assert int(end.timestamp()) == subscription["current_period_end_ts"]
    expected = {"platform": "cardpay", "product_id": "price_pro_month", "bp_product_id": "pro_month"}
    assert {name: pro[name] for name in expected} == expected
    assert (pro["origin"], pro["is_auto_renewable"]) == ("purchase", True)
    assert await read(shop, buyer, subscription["id"]) == {
        "cardpay_sub": subscription,
        "assets": [{**pro, "valid_seconds": pytest.approx(pro["valid_seconds"], abs=60)}],
    }


async def test_responses_list_what_others_share_with_the_user(shop: Shop, buyer: Buyer) -> None:
    await shop.put("share_groups", "pro", {"quota": 1, "platforms": ["cardpay"]})
    owner = await shop.buyer()
    await subscribed(shop, owner)
    _, group = await shop.client_call(owner, "POST", "/bp/asset/share_group/code")
    join = {"share_code": group["share_code"]}
    assert (await shop.client_call(buyer, "POST", "/bp/asset/share_group/join", json=join))[0] == 200
    _, paid = await shop.get(buyer, (await shop.created(buyer))["id"])
    _, begun = await subscribe(shop, buyer)
    assert [[asset["origin"] for asset in answer["assets"]] for answer in (paid, begun)] == [["share"]] * 2


async def test_a_card_of_the_user_pays_without_a_setup_intent(shop: Shop, buyer: Buyer) -> None:
    method = await shop.platform("payment_methods", **{
        "type": "card", "card[number]": CARD["number"], "card[exp_month]": "12", "card[exp_year]": "2040",
    })  # fmt: skip
    answer = await subscribed(shop, buyer, payment_method_id=method["id"])
    assert answer["cardpay_sub"]["status"] == "active"
    intent = await shop.created(buyer, use_default_payment_method=True)
    assert (intent["status"], intent["payment_method_id"]) == ("requires_confirmation", method["id"])


async def test_a_subscription_without_a_card_waits_for_its_payment(shop: Shop, buyer: Buyer) -> None:
    status, answer = await subscribe(shop, buyer)
    assert (status, answer["cardpay_sub"]["status"], answer["assets"]) == (200, "incomplete", [])
    intent = answer["cardpay_sub"]["latest_payment_intent"]
    assert (intent["status"], intent["amount"], intent["currency"]) == ("requires_payment_method", 999, "usd")
    await shop.pay(intent["id"])
    answer = await read(shop, buyer, answer["cardpay_sub"]["id"])
    assert (answer["cardpay_sub"]["status"], len(answer["assets"])) == ("active", 1)


async def test_a_subscription_with_a_card_cannot_be_upgraded_by_wallet(shop: Shop, buyer: Buyer) -> None:
    _, answer = await subscribe(shop, buyer)
    assert (answer["cardpay_sub"]["status"], answer["assets"]) == ("incomplete", [])
    path = f"/bp/asset/walletpay_sub/{answer['cardpay_sub']['id']}/upgrade"
    target = {"new_bp_product_id": "pro_year"}
    attempts = [await shop.client_call(user, "POST", path, json=target) for user in (buyer, await shop.buyer())]
    assert [(status, refused["error"]["error_type"]) for status, refused in attempts] == [
        (400, "subscription_unsupported_upgrade"),
        (404, "item_not_found"),
    ]


async def test_a_declined_card_leaves_a_subscription_that_can_be_paid(shop: Shop, buyer: Buyer) -> None:
    answer = await subscribed(shop, buyer, setup_intent_id=await setup(shop, buyer, number="4000000000000341"))
    assert (answer["cardpay_sub"]["status"], answer["assets"]) == ("incomplete", [])
    _, again = await subscribe(shop, buyer)
    assert again["cardpay_sub"]["id"] == answer["cardpay_sub"]["id"]
    await shop.pay(again["cardpay_sub"]["latest_payment_intent"]["id"])
    assert (await read(shop, buyer, again["cardpay_sub"]["id"]))["cardpay_sub"]["status"] == "active"


async def test_a_card_that_cannot_be_linked_leaves_what_can_be_paid(shop: Shop, buyer: Buyer) -> None:
    method = await shop.platform("payment_methods", **REFUSED)
    status, answer = await subscribe(shop, buyer, payment_method_id=method["id"])
    assert (status, answer["cardpay_sub"]["status"], answer["assets"]) == (200, "incomplete", [])
    await shop.pay(answer["cardpay_sub"]["latest_payment_intent"]["id"])
    assert (await read(shop, buyer, answer["cardpay_sub"]["id"]))["cardpay_sub"]["status"] == "active"


async def test_subscribing_twice_gives_the_same_subscription(shop: Shop, buyer: Buyer) -> None:
    name = await setup(shop, buyer)
    answers = await asyncio.gather(*(subscribe(shop, buyer, setup_intent_id=name) for _ in range(3)))
    assert {status for status, _ in answers} == {200}
    assert len({answer["cardpay_sub"]["id"] for _, answer in answers}) == 1
    assert await origins(shop, buyer) == ["purchase"]


async def test_a_subscription_renews_and_ends_by_webhooks_alone(selling: Shop, buyer: Buyer) -> None:
    subscription = (await subscribed(selling, buyer))["cardpay_sub"]
    buyer = await later(selling, buyer, days=32)

    async def renewed() -> bool:
        return await origins(selling, buyer) == ["purchase", "renewal"]

    await until(renewed)
    pro = (await selling.assets(buyer))["pro"]
    assert (pro["origin"], pro["valid_seconds"] > 20 * 86400) == ("renewal", True)
    cancel = (await cancelled(selling, buyer, subscription["id"]))["cardpay_sub"]
    assert (cancel["status"], cancel["canceled_ts"] > 0) == ("active", True)
    pro = (await selling.assets(buyer))["pro"]
    assert (pro["sub_canceled"], pro["is_auto_renewable"], pro["valid_seconds"] > 0) == (True, False, True)
    buyer = await later(selling, buyer, days=32)

    async def ended() -> bool:
        return (await read(selling, buyer, subscription["id"]))["cardpay_sub"]["status"] == "canceled"

    await until(ended)
    assert (await selling.assets(buyer))["pro"]["valid_seconds"] == 0
    assert await origins(selling, buyer) == ["purchase", "renewal", "cancel"]


async def test_a_year_of_renewals_is_granted_by_one_read(shop: Shop, buyer: Buyer) -> None:
    subscription = (await subscribed(shop, buyer))["cardpay_sub"]
    buyer = await later(shop, buyer, days=367)
    await read(shop, buyer, subscription["id"])
    assert await origins(shop, buyer) == ["purchase", *["renewal"] * 12]
    assert (await shop.assets(buyer))["pro"]["valid_seconds"] > 0


async def test_cancelling_twice_and_subscribing_again_resumes(shop: Shop, buyer: Buyer) -> None:
    subscription = (await subscribed(shop, buyer))["cardpay_sub"]
    for _ in range(2):
        await cancelled(shop, buyer, subscription["id"])
    resumed = (await subscribed(shop, buyer))["cardpay_sub"]
    assert (resumed["id"], resumed["canceled_ts"]) == (subscription["id"], 0)
    pro = (await shop.assets(buyer))["pro"]
    assert (pro["sub_canceled"], pro["is_auto_renewable"]) == (False, True)
    assert await origins(shop, buyer) == ["purchase", "cancel", "resume"]


async def test_an_incomplete_subscription_is_cancelled_at_once(shop: Shop, buyer: Buyer) -> None:
    _, answer = await subscribe(shop, buyer)
    subscription = answer["cardpay_sub"]
    assert (await cancelled(shop, buyer, subscription["id"]))["cardpay_sub"]["status"] == "canceled"
    assert await shop.assets(buyer) == {}
    assert (await subscribed(shop, buyer))["cardpay_sub"]["id"] != subscription["id"]


async def test_a_subscription_that_costs_another_amount_is_granted_and_reported(shop: Shop, buyer: Buyer) -> None:
    product = {
        "type": "subscription", "asset": "pro", "period": "P1M", "price": {"amount": 500, "currency": "USD"},
        "cardpay": {"price_id": "price_pro_month"},
    }  # fmt: skip
    await shop.put("products", "cheap", product)
    answer = await subscribed(shop, buyer, product_id="cheap")
    assert answer["assets"][0]["valid_seconds"] > 0
    product["price"]["countries"] = {"DE": {"amount": 9900, "currency": "USD"}}
    product["cardpay"] = {"price_id": "price_pro_year"}
    await shop.put("products", "fair", product)
    await subscribed(shop, buyer, product_id="fair")
    found = await Operator(shop.server)("GET", "payments/mismatches?app=default")
    [invoice] = await shop.listed("invoices", subscription=answer["cardpay_sub"]["id"])
    ours = [(mismatch["kind"], mismatch["subject"], mismatch["detail"]) for mismatch in found.body["mismatches"]]
    assert ours == [("amount_differs", invoice["id"], "9.99 USD were paid instead of 5.00 USD")]


async def test_a_refund_of_the_last_payment_ends_the_subscription(selling: Shop, buyer: Buyer) -> None:
    subscription = (await subscribed(selling, buyer))["cardpay_sub"]
    [invoice] = await selling.listed("invoices", subscription=subscription["id"])
    [payment] = await selling.listed("invoice_payments", invoice=invoice["id"])
    await selling.platform("refunds", payment_intent=payment["payment"]["payment_intent"])

    async def refunded() -> bool:
        return bool((await selling.assets(buyer))["pro"]["is_refund"])

    await until(refunded)
    assert (await selling.assets(buyer))["pro"]["valid_seconds"] == 0


async def test_a_subscription_is_as_before_once_its_dispute_is_won(selling: Shop, buyer: Buyer) -> None:
    subscription = (await subscribed(selling, buyer))["cardpay_sub"]
    [invoice] = await selling.listed("invoices", subscription=subscription["id"])
    [payment] = await selling.listed("invoice_payments", invoice=invoice["id"])
    intent = payment["payment"]["payment_intent"]
    before = (await selling.assets(buyer))["pro"]

    async def is_refund(expected: bool) -> bool:
        pro = (await selling.assets(buyer))["pro"]
        return pro["is_refund"] is expected and (pro["valid_seconds"] == 0) is expected

    await selling.control("dispute", payment_intent=intent, status="needs_response")
    await until(lambda: is_refund(True))
    await selling.control("dispute", payment_intent=intent, status="won")
    await until(lambda: is_refund(False))
    restored = (await selling.assets(buyer))["pro"] | {"valid_seconds": before["valid_seconds"]}
    assert restored == before | {"origin": "restore"}
    assert await origins(selling, buyer) == ["purchase", "refund", "restore"]


async def test_a_refund_before_anything_is_known_grants_first(shop: Shop, buyer: Buyer) -> None:
    _, answer = await subscribe(shop, buyer)
    intent = answer["cardpay_sub"]["latest_payment_intent"]["id"]
    await shop.pay(intent)
    await shop.send_webhooks()
    await shop.platform("refunds", payment_intent=intent)
    async with working(shop.server.services):

        async def refunded() -> bool:
            return await origins(shop, buyer) == ["purchase", "refund"]

        await until(refunded)
        await shop.stop_webhooks()


async def test_a_renewal_that_is_declined_ends_the_asset_with_its_period(shop: Shop, buyer: Buyer) -> None:
    subscription = (await subscribed(shop, buyer))["cardpay_sub"]
    failing = {"payment_method_name": "pm_card_chargeCustomerFail", "config_name": "Default"}
    path = f"/bp/asset/debug/cardpay_sub/{subscription['id']}/default_payment_method"
    assert await shop.client_call(buyer, "POST", path, json=failing) == (200, {})
    buyer = await later(shop, buyer, days=32)
    answer = await read(shop, buyer, subscription["id"])
    assert (answer["cardpay_sub"]["status"], answer["assets"][0]["valid_seconds"]) == ("past_due", 0)
    intent = answer["cardpay_sub"]["latest_payment_intent"]
    await shop.pay(intent["id"])
    answer = await read(shop, buyer, subscription["id"])
    assert (answer["cardpay_sub"]["status"], answer["assets"][0]["valid_seconds"] > 0) == ("active", True)


async def test_a_lost_response_does_not_subscribe_twice(shop: Shop, buyer: Buyer) -> None:
    name = await setup(shop, buyer)
    # The setup intent is read, the default is set, and then the subscription is created.
    await shop.configure(secret_key=key_of(name=buyer.uid, fault="cut_mid_stream", position=0, skip=2))
    status, answer = await subscribe(shop, buyer, setup_intent_id=name)
    assert (status, answer["error"]["error_type"]) == (400, "backend unavailable")
    # A refusal of the key says nothing about the call before it.
    await shop.configure(secret_key="wrong")
    assert (await subscribe(shop, buyer, setup_intent_id=name))[0] == 400
    await shop.configure()
    subscription = (await subscribed(shop, buyer, setup_intent_id=name))["cardpay_sub"]
    assert subscription["status"] == "active"
    customer = subscription["customer_id"]
    assert len(await shop.listed("subscriptions", customer=customer, status="all")) == 1
    assert await origins(shop, buyer) == ["purchase"]


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ({"product_id": None}, 400, "invalid_parameter: product_id must be a string"),
        ({"product_id": "coins_100"}, 400, "invalid_parameter: product_id is not a subscription"),
        ({"product_id": "unknown"}, 422, "config_invalid: products unknown does not exist"),
        ({"product_id": "unpriced"}, 422, "config_invalid: products unpriced: cardpay.price_id is not set"),
        ({"product_id": "paid"}, 422, "config_invalid: products paid: trial.amount must be 0 for card payments"),
        ({"product_id": "elsewhere"}, 422, "config_invalid: cardpay Elsewhere does not exist"),
        ({"setup_intent_id": "seti_unknown"}, 404, "item_not_found: seti_unknown does not exist"),
        ({"payment_method_id": "pm_unknown"}, 404, "item_not_found: pm_unknown does not exist"),
        (
            {"payment_method_id": "pm_1", "setup_intent_id": "seti_1"},
            400,
            "invalid_parameter: only one of payment_method_id and setup_intent_id is accepted",
        ),
    ],
)
async def test_what_cannot_be_subscribed_to_is_named(
    shop: Shop, buyer: Buyer, body: dict[str, Any], status: int, message: str
) -> None:
    product: dict[str, Any] = {"type": "subscription", "asset": "x", "period": "P1M"}
    await shop.put("products", "unpriced", product)
    paid = {"trial": {"period": "P7D", "amount": 1}, "cardpay": {"price_id": "price_pro_month"}}
    await shop.put("products", "paid", product | paid)
    elsewhere = {"cardpay": {"config": "Elsewhere", "price_id": "price_pro_month"}}
    await shop.put("products", "elsewhere", product | elsewhere)
    found, answer = await subscribe(shop, buyer, **body)
    assert (found, answer["error"]["message"]) == (status, message)


async def test_cards_of_others_cannot_be_used(shop: Shop, buyer: Buyer) -> None:
    other = await shop.buyer()
    name = await setup(shop, other)
    method = (await shop.listed("payment_methods", customer=(await shop.created(other))["customer_id"]))[0]["id"]
    for body in ({"setup_intent_id": name}, {"payment_method_id": method}):
        status, answer = await subscribe(shop, buyer, **body)
        assert (status, answer["error"]["error_type"]) == (404, "item_not_found")


async def test_a_setup_intent_must_be_confirmed(shop: Shop, buyer: Buyer) -> None:
    _, answer = await shop.client_call(buyer, "POST", "/bp/asset/cardpay_setup_intent", json={})
    status, refused = await subscribe(shop, buyer, setup_intent_id=answer["cardpay_setup_intent"]["id"])
    assert (status, refused["error"]["error_type"]) == (400, "invalid_operation")


async def test_subscriptions_of_others_do_not_exist(shop: Shop, buyer: Buyer) -> None:
    name, other = (await subscribed(shop, buyer))["cardpay_sub"]["id"], await shop.buyer()
    for method in ("GET", "DELETE"):
        for user, path in ((other, name), (buyer, "sub_unknown")):
            status, answer = await shop.client_call(user, method, f"/bp/asset/cardpay_sub/{path}")
            assert (status, answer["error"]["error_type"]) == (404, "item_not_found")


@pytest.mark.parametrize("fault", FAULTS)
async def test_every_fault_of_the_platform_is_backend_unavailable(shop: Shop, buyer: Buyer, fault: str) -> None:
    name, card = (await subscribed(shop, buyer))["cardpay_sub"]["id"], await setup(shop, buyer)
    await shop.configure(secret_key=key_of(name=buyer.uid, fault=fault, retry_after_s=0.01, position=0))
    attempts = [
        await shop.client_call(buyer, "POST", "/bp/asset/cardpay_setup_intent", json={}),
        await subscribe(shop, buyer),
        await subscribe(shop, buyer, product_id="pro_year", setup_intent_id=card),
        await shop.client_call(buyer, "GET", f"/bp/asset/cardpay_sub/{name}"),
        await shop.client_call(buyer, "DELETE", f"/bp/asset/cardpay_sub/{name}"),
    ]
    assert {(status, answer["error"]["error_type"]) for status, answer in attempts} == {
        (400, "backend unavailable")
    }


async def test_an_account_is_deactivated_once_its_subscription_does_not_renew(shop: Shop, buyer: Buyer) -> None:
    name = (await subscribed(shop, buyer))["cardpay_sub"]["id"]
    status, answer = await shop.client_call(buyer, "POST", "/bp/user/me/deactivate")
    message = "operation_not_allowed: a subscription with a card renews: cancel it first"
    assert (status, answer["error"]["message"]) == (400, message)
    await cancelled(shop, buyer, name)
    assert (await shop.client_call(buyer, "POST", "/bp/user/me/deactivate"))[0] == 200


async def test_a_missing_config_is_named_before_a_card_is_linked(shop: Shop, buyer: Buyer) -> None:
    for body in ({"pay_platform_config_name": "Other"}, {"product_id": "unknown"}):
        status, answer = await shop.client_call(buyer, "POST", "/bp/asset/cardpay_setup_intent", json=body)
        assert (status, answer["error"]["error_type"]) == (422, "config_invalid")
