"""A user has one live subscription to a product, and one free trial of an asset, by wallet and by card together."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from storage.assets.differences import find_differences
from tests.app.callers import work_off
from tests.app.payments.cards.shop import CONFIG, Buyer, Shop
from tests.app.payments.cards.subscribers import cancelled, read, subscribe, subscribed
from tests.app.payments.wallet.wallets import MONTHLY, PRODUCTS, TRIAL, YEARLY, Wallet, error, put
from tests.calendar.clock import utc_now
from tests.waiting import until
from vendors.sandbox.faults import key_of

BY_CARD = {"cardpay": {"price_id": "price_pro_month"}}
REFUSED = (400, "invalid_operation")


@pytest.fixture
async def shop(wallet: Wallet) -> Shop:
    """The card platform of the same sandbox, where `month` and `trial` are sold too."""
    shop = Shop(wallet.server, wallet.sandbox)
    await shop.put("cardpay", "Default", {**CONFIG, "base_url": f"{wallet.sandbox.url}/stripe"})
    for name in ("month", "trial"):
        await shop.put("products", name, {**PRODUCTS[name], **BY_CARD})
    return shop


def buyer_of(wallet: Wallet) -> Buyer:
    return Buyer(wallet.uid, wallet.session, wallet.device)


async def asked(wallet: Wallet, product: str = "month", **fields: Any) -> tuple[int, Any]:
    return await wallet.post("walletpay_sub", {"product_id": product, **fields})


async def at_platform(wallet: Wallet) -> list[str]:
    return sorted(found["status"] for found in (await wallet.books())["subscriptions"])


async def cancel(wallet: Wallet, sub_id: str) -> None:
    """Cancel a subscription as its payer can on PayPal's pages."""
    await wallet.platform("POST", f"/v1/billing/subscriptions/{sub_id}/cancel", {"reason": "enough"})
    await wallet.sync(sub_id)


def ids_of(answers: Sequence[tuple[int, Any]]) -> set[str]:
    return {answer["walletpay_sub"]["id"] for _, answer in answers}


async def test_a_subscription_that_waits_for_its_approval_is_given_again(wallet: Wallet) -> None:
    first = await wallet.subscribe()
    again = await wallet.subscribe(return_url="https://app.example/other")
    assert (again["id"], again["approve_link_href"]) == (first["id"], first["approve_link_href"])
    assert (await wallet.subscribe("year"))["id"] != first["id"]
    assert await at_platform(wallet) == ["APPROVAL_PENDING", "APPROVAL_PENDING"]


async def test_requests_at_once_subscribe_once(wallet: Wallet) -> None:
    await wallet.configure(client_secret=key_of(delay_ms=50))
    answers = await asyncio.gather(*(asked(wallet) for _ in range(4)))
    assert {status for status, _ in answers} == {200}, answers
    assert len(ids_of(answers)) == 1
    assert await at_platform(wallet) == ["APPROVAL_PENDING"]


async def test_an_active_subscription_refuses_another_one(wallet: Wallet) -> None:
    sub_id = await wallet.subscribed()
    status, answer = await asked(wallet)
    assert (status, answer["error"]["error_type"]) == REFUSED
    assert await at_platform(wallet) == ["ACTIVE"]
    assert (await asked(wallet, "year"))[0] == 200
    await cancel(wallet, sub_id)
    assert (await asked(wallet))[1]["walletpay_sub"]["id"] != sub_id


async def test_a_subscription_that_was_approved_meanwhile_refuses_another_one_and_is_granted(
    wallet: Wallet,
) -> None:
    sub = await wallet.subscribe()
    await wallet.approve(sub["approve_link_href"])
    assert error(await asked(wallet)) == REFUSED
    assert (await wallet.assets())["pro"]["receipt_id"] == sub["id"]
    await wallet.approve((await wallet.subscribe("year"))["approve_link_href"], fault="later")
    assert error(await asked(wallet, "year")) == REFUSED


async def test_a_repeat_with_its_key_gives_the_same_subscription_after_its_approval(wallet: Wallet) -> None:
    key = {"Idempotency-Key": "1"}
    await wallet.configure(client_secret=key_of(fault="cut_mid_stream", position="before", times=1))
    assert (await wallet.post("walletpay_sub", {"product_id": "month"}, **key))[0] != 200
    await wallet.travel(wallet.server.services.clock.now("default") + timedelta(minutes=3))
    await wallet.reconcile()
    [(sub_id,)] = await wallet.rows("select subscription_id from wallet_subscriptions where uid = $1", wallet.uid)
    sub = await wallet.platform("GET", f"/v1/billing/subscriptions/{sub_id}")
    await wallet.approve(next(link["href"] for link in sub["links"] if link["rel"] == "approve"))
    status, answer = await wallet.post("walletpay_sub", {"product_id": "month"}, **key)
    assert (status, answer["walletpay_sub"]["id"], answer["walletpay_sub"]["status"]) == (200, sub_id, "ACTIVE")


async def test_a_subscription_that_was_not_approved_in_time_is_made_anew(wallet: Wallet) -> None:
    first = await wallet.subscribe()
    await wallet.travel(wallet.server.services.clock.now("default") + timedelta(hours=73))
    assert (await wallet.subscribe())["id"] != first["id"]


async def test_of_two_approved_subscriptions_to_a_product_the_later_one_is_refunded_in_full(wallet: Wallet) -> None:
    """Another country has another plan, so the first link does not fit, but remains at the platform."""
    plans = {"plan_id": MONTHLY, "plans": {"JP": YEARLY}}
    await put(wallet.server, "products", "month", {**PRODUCTS["month"], "walletpay": plans})
    first, second = await wallet.subscribe(), await wallet.subscribe(country_code="JP")
    assert (second["id"] != first["id"], second["plan_id"]) == (True, YEARLY)
    for sub in (first, second):
        await wallet.approve(sub["approve_link_href"])
        assert (await wallet.sync(sub["id"]))[0] == 200
    await work_off(wallet.server.services)
    assert await at_platform(wallet) == ["ACTIVE", "CANCELLED"]
    payments = {payment["subscription_id"]: payment for payment in (await wallet.books())["payments"]}
    assert (payments[first["id"]]["refunded"], payments[second["id"]]["refunded"]) == (0, 9900)
    assert await wallet.kinds() == ["grant"]


async def suspend(wallet: Wallet, sub_id: str, *, again: bool = False) -> None:
    """Let the platform suspend a subscription, or activate it again."""
    action = "activate" if again else "suspend"
    await wallet.platform("POST", f"/v1/billing/subscriptions/{sub_id}/{action}", {"reason": "payment"})
    await wallet.sync(sub_id)


async def test_a_suspended_subscription_that_is_activated_beside_a_later_one_is_ended_and_its_rest_refunded(
    wallet: Wallet,
) -> None:
    """15.25 of 30 days are left of a payment of 9.99."""
    begin = datetime(2027, 4, 1, 12, tzinfo=UTC)
    await wallet.travel(begin)
    first = await wallet.subscribed()
    await suspend(wallet, first)
    await wallet.travel(begin + timedelta(days=5))
    second = await wallet.subscribed()
    await wallet.travel(begin + timedelta(days=14, hours=18))
    await suspend(wallet, first, again=True)
    await work_off(wallet.server.services)
    states = {sub["id"]: sub["status"] for sub in (await wallet.books())["subscriptions"]}
    assert states == {first: "CANCELLED", second: "ACTIVE"}
    refunded = {payment["subscription_id"]: payment["refunded"] for payment in (await wallet.books())["payments"]}
    assert refunded == {first: 508, second: 0}
    _, answer = await wallet.get("")
    assert [asset["receipt_id"] for asset in answer["assets"] if asset["valid_seconds"]] == [second]
    assert [difference async for difference in find_differences(wallet.server.services.database)] == []


async def test_a_suspended_subscription_that_is_activated_beside_one_with_a_card_is_ended(
    wallet: Wallet, shop: Shop
) -> None:
    sub_id = await wallet.subscribed()
    await suspend(wallet, sub_id)
    by_card = (await subscribed(shop, buyer_of(wallet), product_id="month"))["cardpay_sub"]["id"]
    await suspend(wallet, sub_id, again=True)
    await work_off(wallet.server.services)
    assert (await at_platform(wallet), await card_state(shop, by_card)) == (["CANCELLED"], "active")


async def test_an_upgrade_that_waits_is_separate_and_ends_if_its_product_is_subscribed_to_meanwhile(
    wallet: Wallet,
) -> None:
    old = await wallet.subscribed()
    upgrade = (await wallet.upgrade(old))[1]["walletpay_sub"]
    year = await wallet.subscribe("year")
    assert year["id"] != upgrade["id"]
    await wallet.approve(year["approve_link_href"])
    await wallet.sync(year["id"])
    assert (await wallet.upgrade(old))[1]["walletpay_sub"]["id"] == upgrade["id"]
    await wallet.approve(upgrade["approve_link_href"])
    await wallet.sync(upgrade["id"])
    await work_off(wallet.server.services)
    assert await at_platform(wallet) == ["ACTIVE", "ACTIVE", "CANCELLED"]
    assert [payment["refunded"] for payment in (await wallet.books())["payments"]] == [0, 0, 9900]
    assert await wallet.kinds() == ["grant", "grant"]


async def test_an_upgrade_to_a_product_with_a_live_subscription_is_refused(wallet: Wallet) -> None:
    await wallet.subscribed("year")
    assert error(await wallet.upgrade(await wallet.subscribed())) == REFUSED


async def test_a_subscription_with_a_card_refuses_one_by_wallet(wallet: Wallet, shop: Shop) -> None:
    buyer = buyer_of(wallet)
    by_card = (await subscribed(shop, buyer, product_id="month"))["cardpay_sub"]["id"]
    assert error(await asked(wallet)) == REFUSED
    await cancelled(shop, buyer, by_card)
    assert (await asked(wallet))[0] == 200


async def test_a_subscription_by_wallet_refuses_one_with_a_card(wallet: Wallet, shop: Shop) -> None:
    buyer = buyer_of(wallet)
    sub_id = await wallet.subscribed()
    assert error(await subscribe(shop, buyer, product_id="month")) == REFUSED
    await cancel(wallet, sub_id)
    assert (await subscribe(shop, buyer, product_id="month"))[0] == 200


async def test_a_subscription_with_a_card_is_given_again_although_one_by_wallet_waits(
    wallet: Wallet, shop: Shop
) -> None:
    await wallet.subscribe()
    buyer = buyer_of(wallet)
    first = (await subscribed(shop, buyer, product_id="month"))["cardpay_sub"]["id"]
    assert (await subscribed(shop, buyer, product_id="month"))["cardpay_sub"]["id"] == first


async def test_a_free_trial_by_wallet_is_given_once(wallet: Wallet) -> None:
    await put(wallet.server, "products", "trial_too", {**PRODUCTS["trial"], "walletpay": {"plan_id": TRIAL}})
    sub_id = await wallet.subscribed("trial")
    assert error(await asked(wallet, "trial_too")) == REFUSED
    await cancel(wallet, sub_id)
    status, answer = await asked(wallet, "trial")
    assert (status, answer["error"]["message"]) == (400, "invalid_operation: the user has had a free trial of pro")
    assert (await asked(wallet, "month"))[0] == 200


async def test_a_trial_of_another_asset_is_another_one(wallet: Wallet) -> None:
    await put(wallet.server, "products", "plus", {**PRODUCTS["trial"], "asset": "plus"})
    await wallet.subscribed("trial")
    await wallet.subscribed("plus")
    assert {name for name, asset in (await wallet.assets()).items() if asset["is_trial_period"]} == {"pro", "plus"}


async def test_of_two_trials_that_are_approved_one_is_granted(wallet: Wallet) -> None:
    await put(wallet.server, "products", "trial_too", {**PRODUCTS["trial"], "walletpay": {"plan_id": TRIAL}})
    subs = [await wallet.subscribe(product) for product in ("trial", "trial_too")]
    for sub in subs:
        await wallet.approve(sub["approve_link_href"])
        assert (await wallet.sync(sub["id"]))[0] == 200
    assert await wallet.entries() == [(f"wallet:trial:{subs[0]['id']}", "grant")]
    await wallet.renew(subs[1]["id"])
    await wallet.sync(subs[1]["id"])
    assert len(await wallet.entries()) == 2


async def test_a_trial_that_is_not_granted_is_read_once_a_day_and_when_it_is_paid(wallet: Wallet) -> None:
    await put(wallet.server, "products", "trial_too", {**PRODUCTS["trial"], "walletpay": {"plan_id": TRIAL}})
    subs = [await wallet.subscribe(product) for product in ("trial", "trial_too")]
    for sub in subs:
        await wallet.approve(sub["approve_link_href"])
        assert (await wallet.sync(sub["id"]))[0] == 200
    begun, path, reads = utc_now(), f"/v1/billing/subscriptions/{subs[1]['id']}", []
    for minutes in (2, 4, 24 * 60 + 1, 8 * 24 * 60 + 1):  # The platform takes payments at 10:00 of the seventh day.
        before = max(call.id for call in wallet.sandbox.bill.since(0))
        await wallet.travel(begun + timedelta(minutes=minutes))
        await wallet.reconcile()
        made = [call.asked.get("path", "") for call in wallet.sandbox.bill.since(before)]
        reads.append(sum(called.endswith(path) for called in made))
    assert reads == [0, 0, 1, 1]
    assert len(await wallet.entries()) >= 2


async def test_a_trial_with_a_card_is_the_trial_by_wallet_too(wallet: Wallet, shop: Shop) -> None:
    await put(wallet.server, "products", "trial_too", {**PRODUCTS["trial"], "walletpay": {"plan_id": TRIAL}})
    by_card = (await subscribed(shop, buyer_of(wallet), product_id="trial"))["cardpay_sub"]
    assert by_card["status"] == "trialing"
    assert error(await asked(wallet, "trial_too")) == REFUSED


async def test_a_trial_by_wallet_is_the_trial_with_a_card_too(wallet: Wallet, shop: Shop) -> None:
    buyer = buyer_of(wallet)
    await cancel(wallet, await wallet.subscribed("trial"))
    answer = await subscribed(shop, buyer, product_id="trial")
    [by_card] = [asset for asset in answer["assets"] if asset["platform"] == "cardpay"]
    assert (answer["cardpay_sub"]["status"], by_card["origin"]) == ("active", "purchase")


async def waiting_card(shop: Shop, buyer: Buyer) -> dict[str, Any]:
    """A subscription with a card that waits for its first payment."""
    status, answer = await subscribe(shop, buyer, product_id="month")
    assert (status, answer["cardpay_sub"]["status"]) == (200, "incomplete")
    sub: dict[str, Any] = answer["cardpay_sub"]
    return sub


async def card_state(shop: Shop, name: str) -> str:
    [state] = [sub["status"] for sub in await shop.listed("subscriptions", status="all") if sub["id"] == name]
    return str(state)


async def refunds_of(shop: Shop, intent: str) -> list[int]:
    return [refund["amount"] for refund in await shop.listed("refunds", payment_intent=intent)]


async def test_a_card_that_is_confirmed_after_the_wallet_has_paid_is_cancelled_and_refunded_in_full(
    wallet: Wallet, shop: Shop
) -> None:
    buyer, waiting = buyer_of(wallet), await waiting_card(shop, buyer_of(wallet))
    await wallet.subscribed()
    intent = waiting["latest_payment_intent"]["id"]
    await shop.send_webhooks()
    paid = (await shop.pay(intent))["amount"]
    await read(shop, buyer, waiting["id"])
    for _ in range(2):
        await work_off(wallet.server.services)
        await until(lambda: wallet.sandbox.sandbox.deliveries.is_idle)
    await work_off(wallet.server.services)
    assert await card_state(shop, waiting["id"]) == "canceled"
    assert await refunds_of(shop, intent) == [paid]
    assert await at_platform(wallet) == ["ACTIVE"]
    valid = [asset["platform"] for asset in await owned(wallet) if asset["valid_seconds"]]
    assert valid == ["walletpay"]
    assert error(await asked(wallet)) == REFUSED
    assert [difference async for difference in find_differences(wallet.server.services.database)] == []


async def owned(wallet: Wallet) -> list[dict[str, Any]]:
    _, answer = await wallet.get("")
    assets: list[dict[str, Any]] = answer["assets"]
    return assets


async def test_a_wallet_that_is_approved_after_the_card_has_paid_is_cancelled_and_refunded_in_full(
    wallet: Wallet, shop: Shop
) -> None:
    buyer, waiting = buyer_of(wallet), await waiting_card(shop, buyer_of(wallet))
    by_wallet = await wallet.subscribe()
    await shop.pay(waiting["latest_payment_intent"]["id"])
    await read(shop, buyer, waiting["id"])
    await wallet.approve(by_wallet["approve_link_href"])
    await wallet.sync(by_wallet["id"])
    await work_off(wallet.server.services)
    assert (await at_platform(wallet), await card_state(shop, waiting["id"])) == (["CANCELLED"], "active")


async def test_a_card_cannot_pay_or_resume_a_subscription_beside_a_live_one_by_wallet(
    wallet: Wallet, shop: Shop
) -> None:
    buyer, waiting = buyer_of(wallet), await waiting_card(shop, buyer_of(wallet))
    sub_id = await wallet.subscribed()
    assert error(await subscribe(shop, buyer, product_id="month")) == REFUSED
    await cancel(wallet, sub_id)
    assert (await subscribed(shop, buyer, product_id="month"))["cardpay_sub"]["status"] == "active"
    await cancelled(shop, buyer, waiting["id"])
    await wallet.subscribed()
    assert error(await subscribe(shop, buyer, product_id="month")) == REFUSED
    assert [sub["cancel_at_period_end"] for sub in await shop.listed("subscriptions")] == [True]


async def test_a_cancelled_card_subscription_that_is_resumed_at_the_platform_beside_a_live_one_is_cancelled(
    wallet: Wallet, shop: Shop
) -> None:
    """Its paid period lasts, and is not refunded."""
    buyer = buyer_of(wallet)
    sub = (await subscribed(shop, buyer, product_id="month"))["cardpay_sub"]
    await cancelled(shop, buyer, sub["id"])
    await wallet.subscribed()
    await shop.platform(f"subscriptions/{sub['id']}", cancel_at_period_end="false")
    await read(shop, buyer, sub["id"])
    await work_off(wallet.server.services)
    assert (await at_platform(wallet), await card_state(shop, sub["id"])) == (["ACTIVE"], "canceled")
    assert await shop.listed("refunds", customer=sub["customer_id"]) == []
    assert all(asset["valid_seconds"] > 0 for asset in await owned(wallet))


async def test_a_card_subscription_that_is_billed_until_a_later_date_is_live(wallet: Wallet, shop: Shop) -> None:
    buyer = buyer_of(wallet)
    name = (await subscribed(shop, buyer, product_id="month"))["cardpay_sub"]["id"]
    end = wallet.server.services.clock.now("default") + timedelta(days=90)
    await shop.platform(f"subscriptions/{name}", cancel_at=str(int(end.timestamp())))
    assert (await read(shop, buyer, name))["assets"][0]["sub_canceled"]
    assert error(await asked(wallet)) == REFUSED
    await cancelled(shop, buyer, name)
    assert (await asked(wallet))[0] == 200
