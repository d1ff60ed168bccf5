"""A draft of a product shows what a payer would pay at each payment platform. Nothing is stored."""

from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import pytest

from tests.app.callers import working
from tests.app.operator_calls import call
from tests.app.payments.cards.shop import Shop, open_shop
from tests.app.payments.wallet.wallets import MONTHLY, PRO, TRIAL, YEARLY, Wallet, wallet_at
from tests.app.trials.rows import rows_of
from tests.running.servers import Databases
from tests.waiting import until

MONTH: dict[str, Any] = {
    "type": "subscription",
    "asset": "pro",
    "period": "P1M",
    "price": {"amount": 999, "currency": "USD"},
}
JOB_TABLES = {"procrastinate_jobs", "procrastinate_events", "procrastinate_workers"}
COINS: dict[str, Any] = {
    "type": "consumable",
    "asset": "coins",
    "quantity": 100,
    "price": {"amount": 199, "currency": "USD"},
}


@pytest.fixture(scope="module")
async def testbed(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Shop]:
    async with open_shop(databases, tmp_path_factory.mktemp("data")) as opened:
        yield opened


@pytest.fixture
async def shop(testbed: Shop) -> AsyncIterator[Shop]:
    yield testbed
    await testbed.configure()
    await testbed.sandbox.reset()


@pytest.fixture
async def wallet(shop: Shop) -> AsyncIterator[Wallet]:
    async with wallet_at(shop.server, shop.sandbox) as opened:
        yield opened


async def tried(shop: Shop, **value: Any) -> Any:
    path = "/admin/api/configs/default/products/draft/try"
    status, answer = await call(shop.server, "POST", path, {"value": value})
    assert status == 200, answer
    return answer


async def price(shop: Shop, **value: Any) -> Any:
    [found] = (await tried(shop, **value))["prices"]
    return found


async def test_a_subscription_is_read_back_from_both_platforms(shop: Shop, wallet: Wallet) -> None:
    before = await rows_of(shop.server)
    answer = await tried(shop, **MONTH, cardpay={"price_id": "price_pro_month"}, walletpay={"plan_id": MONTHLY})
    card, plan = answer["prices"]
    terms = {"amount": 999, "currency": "USD", "period": "P1M", "trial": "", "trial_amount": 0}
    assert (card["platform"], card["object"], card["id"]) == ("cardpay", "price", "price_pro_month")
    assert (plan["platform"], plan["object"], plan["id"]) == ("walletpay", "plan", MONTHLY)
    for found in (card, plan):
        assert (found["draft"], found["found"], found["active"]) == (terms, terms, True)
        assert (found["differences"], "error" in found) == ([], False)
    assert answer["left_out"] == 0
    assert await rows_of(shop.server) == before


async def test_each_difference_is_a_sentence(shop: Shop, wallet: Wallet) -> None:
    yearly = await price(shop, **MONTH, cardpay={"price_id": "price_pro_year"})
    assert yearly["differences"] == [
        "A payer pays 99.00 USD, but the draft says 9.99 USD.",
        "The price is billed every year, but the draft says every month.",
    ]
    in_months = {**MONTH, "period": "P12M", "price": {"amount": 9900, "currency": "USD"}}
    assert (await price(shop, **in_months, cardpay={"price_id": "price_pro_year"}))["differences"] == []
    trial = await price(shop, **MONTH, walletpay={"plan_id": TRIAL})
    assert trial["differences"] == ["The plan has a trial of 1 week, but the draft has none."]
    week = {"trial": {"period": "P7D"}}
    assert (await price(shop, **MONTH, **week, walletpay={"plan_id": TRIAL}))["differences"] == []
    longer = await price(shop, **MONTH, trial={"period": "P1M", "amount": 100}, walletpay={"plan_id": TRIAL})
    assert longer["differences"] == [
        "The trial lasts 1 week, but the draft says 1 month.",
        "The trial costs 0.00 USD, but the draft says 1.00 USD.",
    ]
    assert (await price(shop, **MONTH, **week, walletpay={"plan_id": MONTHLY}))["differences"] == [
        "The draft has a trial of 7 days, but the plan has none.",
    ]
    assert (await price(shop, **MONTH, **week, cardpay={"price_id": "price_pro_month"}))["differences"] == []


async def test_what_nobody_can_subscribe_to_is_said(shop: Shop, wallet: Wallet) -> None:
    form = {"currency": "usd", "unit_amount": "999", "active": "false", "recurring[interval]": "month"}
    inactive = await shop.platform("prices", **form)
    found = await price(shop, **MONTH, cardpay={"price_id": inactive["id"]})
    assert (found["active"], found["differences"]) == (
        False, ["The price is not active, so nobody can subscribe to it."],
    )  # fmt: skip
    await wallet.platform("POST", f"/v1/billing/plans/{YEARLY}/deactivate", {})
    found = await price(shop, **{**MONTH, "period": "P1Y"}, walletpay={"plans": {"DE": YEARLY}})
    assert (found["active"], found["countries"]) == (False, ["DE"])
    assert "The plan is not active, so nobody can subscribe to it." in found["differences"]
    gone = await price(shop, **MONTH, cardpay={"price_id": "price_gone"})
    assert (gone["differences"], "found" in gone) == (["The card platform has no price price_gone."], False)
    gone = await price(shop, **MONTH, walletpay={"plan_id": "P-GONE"})
    assert gone["differences"] == ["The wallet platform has no plan P-GONE."]
    odd = await shop.platform("prices", **{**form, "active": "true", "currency": "xyz"})
    found = await price(shop, **MONTH, cardpay={"price_id": odd["id"]})
    assert found["differences"] == ["The price has no fixed amount."]
    assert "names no plan_id" in (await price(shop, **MONTH, walletpay={}))["differences"][0]
    assert "names no price_id" in (await price(shop, **MONTH, cardpay={}))["differences"][0]
    assert (await tried(shop, **MONTH))["prices"] == []


async def test_a_plan_has_its_countries_its_setup_fee_and_its_end(shop: Shop, wallet: Wallet) -> None:
    cycle = {
        "frequency": {"interval_unit": "MONTH", "interval_count": 3}, "tenure_type": "REGULAR", "sequence": 1,
        "total_cycles": 4, "pricing_scheme": {"fixed_price": {"currency_code": "USD", "value": "20.00"}},
    }  # fmt: skip
    body = {
        "product_id": PRO, "name": "Quarterly", "billing_cycles": [cycle],
        "payment_preferences": {"setup_fee": {"currency_code": "USD", "value": "5.00"}},
        "taxes": {"percentage": "10", "inclusive": False},
    }  # fmt: skip
    plan = (await wallet.platform("POST", "/v1/billing/plans", body))["id"]
    countries = {"JP": {"amount": 300, "currency": "JPY"}, "FR": {"amount": 2200, "currency": "USD"}}
    draft = {**MONTH, "period": "P3M", "price": {"amount": 2200, "currency": "USD", "countries": countries}}
    found = await price(shop, **draft, walletpay={"plan_id": plan})
    assert found["found"]["amount"] == 2200, "a payer pays the tax, too"
    assert found["differences"] == [
        "In JP: A payer pays 22.00 USD, but the draft says 300 JPY.",
        "The plan ends after 4 payments.",
        "The first payment takes a setup fee of 5.00 USD in addition.",
    ]


async def test_a_purchase_is_made_at_both_platforms_and_never_paid(shop: Shop, wallet: Wallet) -> None:
    before = await rows_of(shop.server)
    countries = {"JP": {"amount": 300, "currency": "JPY"}, "FR": {"amount": 199, "currency": "USD"}}
    draft = {**COINS, "price": {**COINS["price"], "countries": countries}}
    answer = await tried(shop, **draft, walletpay={})
    made = {(row["platform"], row["found"]["currency"]): row for row in answer["prices"]}
    assert set(made) == {(name, currency) for name in ("cardpay", "walletpay") for currency in ("USD", "JPY")}
    assert (made["cardpay", "JPY"]["found"]["amount"], made["cardpay", "JPY"]["countries"]) == (300, ["JP"])
    for currency in ("USD", "JPY"):
        intent, order = made["cardpay", currency], made["walletpay", currency]
        assert (intent["status"], intent["object"], order["status"], order["object"]) == (
            "canceled", "payment", "CREATED", "order",
        )  # fmt: skip
    listed = {intent["id"]: intent for intent in await shop.listed("payment_intents")}
    assert {listed[made["cardpay", currency]["id"]]["status"] for currency in ("USD", "JPY")} == {"canceled"}
    assert (await wallet.books())["payments"] == []
    assert await rows_of(shop.server) == before


async def test_webhooks_about_a_tried_payment_are_ignored(shop: Shop) -> None:
    async def done() -> bool:
        async with shop.server.services.database.connection() as conn:
            states = await conn.fetch("select status from webhooks")
        return [row["status"] for row in states] == ["done", "done"]  # It was created and cancelled.

    before = await rows_of(shop.server)
    await shop.send_webhooks()
    async with working(shop.server.services):
        await tried(shop, **COINS)
        await until(done)
        await shop.stop_webhooks()
    after = await rows_of(shop.server)
    assert {table for table in after if after[table] != before[table]} <= {"webhooks", *JOB_TABLES}


async def test_what_a_platform_refuses_is_an_answer(shop: Shop, wallet: Wallet) -> None:
    small = {**COINS, "price": {"amount": 1, "currency": "USD"}}
    found = await price(shop, **small)
    assert "amount is refused by the card platform (amount_too_small)" in found["error"]
    await shop.configure(currencies=["EUR"])
    assert "USD is not one of currencies" in (await price(shop, **COINS))["error"]
    found = await price(shop, **COINS, cardpay={"config": "nowhere"})
    assert (found["config"], "nowhere" in found["error"]) == ("nowhere", True)
    await shop.configure()
    assert (await price(shop, type="nonconsumable", asset="map"))["differences"] == [
        "The draft has no price, so nobody can buy it.",
    ]
    await wallet.configure(client_id=f"client-{uuid4().hex}", base_url="{sandbox}/elsewhere")
    found = (await tried(shop, **COINS, walletpay={}))["prices"][1]
    assert "walletpay answered 404" in found["error"]
    found = await price(shop, **MONTH, walletpay={"plan_id": MONTHLY})
    assert ("walletpay answered 404" in found["error"], found["differences"]) == (True, [])


async def test_a_platform_that_is_down_is_asked_once(shop: Shop, wallet: Wallet) -> None:
    await shop.configure(base_url="http://127.0.0.1:1")
    countries = {name: {"amount": amount, "currency": "USD"} for amount, name in enumerate(("DE", "FR"), 300)}
    draft = {**COINS, "price": {**COINS["price"], "countries": countries}}
    answer = await tried(shop, **draft, walletpay={})
    card, *orders = answer["prices"]
    assert (card["platform"], card["error"].split(":")[0]) == ("cardpay", "backend unavailable")
    assert ([row["platform"] for row in orders], answer["left_out"]) == (["walletpay"] * 3, 2)
    assert "sandbox" not in card["error"], "the key of the account is not part of it"


async def test_a_product_has_at_most_20_prices_to_try(shop: Shop, wallet: Wallet) -> None:
    names = [f"{first}{second}" for first in "AB" for second in "ABCDEFGHIJKL"]
    countries = {name: {"amount": amount, "currency": "USD"} for amount, name in enumerate(names, 300)}
    answer = await tried(shop, **{**COINS, "price": {**COINS["price"], "countries": countries}})
    assert (len(answer["prices"]), answer["left_out"]) == (20, 5)


async def test_a_draft_that_cannot_be_written_is_not_tried(shop: Shop) -> None:
    path = "/admin/api/configs/default/products/draft/try"
    status, answer = await call(shop.server, "POST", path, {"value": {**COINS, "quantity": 0}})
    assert (status, "quantity must be at least 1" in answer["error"]["message"]) == (400, True)
