"""Users subscribe by wallet: each payment grants a period once, and refunds end it."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from storage.configs.rows import ConfigKey
from storage.operators.audit import COMMAND
from tests.app.callers import ask
from tests.app.payments.wallet.wallets import MONTHLY, PRO, PRODUCTS, YEARLY, ZERO, Wallet, another, error, put
from tests.calendar.clock import utc_now

DAY = timedelta(days=1)
NEW_YEAR = datetime(2029, 1, 1, 12, tzinfo=UTC)
LAST_OF_JANUARY = datetime(2027, 1, 31, 12, tzinfo=UTC)
"""A month later it is 28 February. The payment after that is due on 1 March at 10:00."""


async def read(wallet: Wallet, sub_id: str, how: str = "/sync") -> dict[str, Any]:
    status, answer = await wallet.get(f"walletpay_sub/{sub_id}{how}")
    assert status == 200, answer
    sub: dict[str, Any] = answer["walletpay_sub"]
    return sub


def end_of(asset: dict[str, Any]) -> datetime:
    return datetime.fromisoformat(asset["expire_time"])


async def test_a_subscription_is_approved_and_grants_its_period(wallet: Wallet) -> None:
    await wallet.travel(LAST_OF_JANUARY)
    status, answer = await wallet.post("walletpay_sub", {"product_id": "month"})
    sub = answer["walletpay_sub"]
    assert (status, answer["assets"]) == (200, [])
    assert sub["id"].startswith("I-")
    expected = {
        "id": sub["id"],
        "plan_id": MONTHLY,
        "status": "APPROVAL_PENDING",
        "approve_link_href": sub["approve_link_href"],
        "canceled_ts": 0,
        "canceled_time": ZERO,
        "last_payment_ts": 0,
        "next_billing_ts": 0,
        "bp_product_id": "month",
        "walletpay_product_id": PRO,
    }
    assert sub == expected
    assert (await read(wallet, sub["id"]))["status"] == "APPROVAL_PENDING"
    assert (await wallet.approve(sub["approve_link_href"])).startswith("https://app.example/paid?")
    status, answer = await wallet.sync(sub["id"])
    active, [asset] = answer["walletpay_sub"], answer["assets"]
    assert (active["status"], active["approve_link_href"]) == ("ACTIVE", "")
    payment = active["latest_transaction"]
    assert (payment["status"], payment["amount"], payment["currency"]) == ("COMPLETED", 999, "usd")
    assert payment["ts"] == active["last_payment_ts"]
    assert 0 <= active["last_payment_ts"] - LAST_OF_JANUARY.timestamp() < 60
    assert active["next_billing_ts"] == datetime(2027, 3, 1, 10, tzinfo=UTC).timestamp()
    assert "next_billing_amount" not in active
    assert (asset["name"], asset["origin"], asset["platform"], asset["product_id"]) == (
        "pro",
        "purchase",
        "walletpay",
        MONTHLY,
    )
    assert (asset["receipt_id"], asset["is_auto_renewable"], asset["quantity"]) == (sub["id"], True, 30)
    assert (await wallet.paid_until()).timestamp() == active["last_payment_ts"] + 28 * 86_400
    assert end_of(asset).timestamp() == active["next_billing_ts"] + 86_400
    assert await wallet.entries() == [(f"wallet:sale:{payment['id']}", "grant")]


async def test_fetch_shows_the_next_payment_and_changes_no_assets(wallet: Wallet) -> None:
    sub = await wallet.subscribe()
    await wallet.approve(sub["approve_link_href"])
    status, answer = await wallet.get(f"walletpay_sub/{sub['id']}/fetch")
    fetched = answer["walletpay_sub"]
    assert (status, fetched["status"], answer["assets"]) == (200, "ACTIVE", [])
    assert (fetched["next_billing_amount"], fetched["next_billing_currency"]) == (999, "usd")
    assert await wallet.entries() == []


async def test_the_deprecated_path_syncs(wallet: Wallet) -> None:
    sub = await wallet.subscribe()
    await wallet.approve(sub["approve_link_href"])
    assert (await read(wallet, sub["id"], ""))["status"] == "ACTIVE"
    assert await wallet.kinds() == ["grant"]
    _, reference = await ask(wallet.server, "GET", "/openapi.json")
    assert reference["paths"]["/bp/asset/walletpay_sub/{sub_id}"]["get"]["deprecated"] is True


async def test_concurrent_syncs_grant_once(wallet: Wallet) -> None:
    sub = await wallet.subscribe()
    await wallet.approve(sub["approve_link_href"])
    answers = await asyncio.gather(*(wallet.sync(sub["id"]) for _ in range(6)))
    assert {status for status, _ in answers} == {200}
    assert await wallet.kinds() == ["grant"]


async def test_renewals_extend_the_asset_in_their_order(wallet: Wallet) -> None:
    sub_id = await wallet.subscribed()
    first = (await wallet.assets())["pro"]
    await wallet.renew(sub_id, times=3)
    await wallet.sync(sub_id)
    pro = (await wallet.assets())["pro"]
    assert 80 * DAY < end_of(pro) - end_of(first) < 100 * DAY
    assert pro["origin"] == "renewal"
    assert await wallet.kinds() == ["grant"] * 4


async def test_a_year_of_renewals_by_the_clock_is_granted(wallet: Wallet) -> None:
    await wallet.travel(datetime(2027, 12, 31, 12, tzinfo=UTC))
    sub_id = await wallet.subscribed()
    for first in [*(datetime(2028, month, 1, 12, tzinfo=UTC) for month in range(2, 13)), NEW_YEAR]:
        await wallet.travel(first)
        await wallet.reconcile()
        assert (await wallet.assets())["pro"]["valid_seconds"] > 0
    sub = await read(wallet, sub_id)
    assert len(await wallet.entries()) == 13
    assert sub["status"] == "ACTIVE"


async def test_a_cancelled_subscription_keeps_its_paid_period(wallet: Wallet) -> None:
    sub_id = await wallet.subscribed()
    await wallet.platform("POST", f"/v1/billing/subscriptions/{sub_id}/cancel", {"reason": "enough"})
    sub = await read(wallet, sub_id)
    assert (sub["status"], sub["next_billing_ts"]) == ("CANCELLED", 0)
    assert abs(sub["canceled_ts"] - utc_now().timestamp()) < 60
    assert datetime.fromisoformat(sub["canceled_time"]).timestamp() == sub["canceled_ts"]
    after = (await wallet.assets())["pro"]
    assert (end_of(after), after["sub_canceled"], after["is_auto_renewable"]) == (
        await wallet.paid_until(),
        True,
        False,
    )
    await read(wallet, sub_id)
    assert await wallet.kinds() == ["grant", "cancel"]


async def test_a_refund_of_the_last_payment_ends_the_asset(wallet: Wallet) -> None:
    sub_id = await wallet.subscribed()
    sale = (await read(wallet, sub_id))["latest_transaction"]["id"]
    await wallet.control("refund", payment_id=sale, value="1.00")
    assert (await read(wallet, sub_id))["latest_transaction"]["status"] == "PARTIALLY_REFUNDED"
    assert (await wallet.assets())["pro"]["valid_seconds"] > 0
    await wallet.control("refund", payment_id=sale)
    assert (await read(wallet, sub_id))["latest_transaction"]["status"] == "REFUNDED"
    pro = (await wallet.assets())["pro"]
    assert (pro["valid_seconds"], pro["is_refund"]) == (0, True)
    assert await wallet.entries() == [(f"wallet:sale:{sale}", "grant"), (f"refund:{sale}", "refund")]


async def test_a_refund_of_an_earlier_payment_leaves_the_asset(wallet: Wallet) -> None:
    sub_id = await wallet.subscribed()
    sale = (await read(wallet, sub_id))["latest_transaction"]["id"]
    await wallet.renew(sub_id)
    await read(wallet, sub_id)
    await wallet.control("refund", payment_id=sale)
    await read(wallet, sub_id)
    assert (await wallet.assets())["pro"]["valid_seconds"] > 0
    assert await wallet.kinds() == ["grant", "grant", "refund"]


async def test_a_payment_that_is_refunded_before_it_is_seen_is_granted_and_refunded(wallet: Wallet) -> None:
    sub = await wallet.subscribe()
    await wallet.approve(sub["approve_link_href"])
    sale = (await read(wallet, sub["id"], "/fetch"))["latest_transaction"]["id"]
    await wallet.control("refund", payment_id=sale)
    await read(wallet, sub["id"])
    assert await wallet.kinds() == ["grant", "refund"]
    assert (await wallet.assets())["pro"]["valid_seconds"] == 0


async def test_a_free_trial_is_granted_without_a_payment_and_then_paid(wallet: Wallet) -> None:
    await wallet.travel(LAST_OF_JANUARY - 7 * DAY)
    sub_id = await wallet.subscribed("trial")
    pro = (await wallet.assets())["pro"]
    assert (pro["origin"], pro["is_trial_period"]) == ("trial", True)
    trial_until = await wallet.paid_until()
    assert timedelta(0) <= trial_until - LAST_OF_JANUARY < timedelta(minutes=1)
    assert end_of(pro) == datetime(2027, 2, 1, 10, tzinfo=UTC)  # A day after the payment of 31 January.
    assert "latest_transaction" not in await read(wallet, sub_id)
    await wallet.renew(sub_id)
    await read(wallet, sub_id)
    paid = (await wallet.assets())["pro"]
    assert (paid["origin"], paid["is_trial_period"]) == ("purchase", False)
    assert await wallet.paid_until() == datetime(2027, 2, 28, 10, tzinfo=UTC)
    assert end_of(paid) == datetime(2027, 3, 2, 10, tzinfo=UTC)
    assert await wallet.kinds() == ["grant", "grant"]


async def test_a_paid_trial_lasts_for_its_period(wallet: Wallet) -> None:
    cycles = [
        {**cycle("WEEK", "1.00"), "tenure_type": "TRIAL", "sequence": 1, "total_cycles": 1},
        {**cycle("MONTH", "9.99"), "tenure_type": "REGULAR", "sequence": 2, "total_cycles": 0},
    ]
    body = {"product_id": PRO, "name": "Trial", "billing_cycles": cycles, "payment_preferences": {}}
    plan = await wallet.platform("POST", "/v1/billing/plans", body)
    product = {**PRODUCTS["trial"], "trial": {"period": "P1W", "amount": 100}, "walletpay": {"plan_id": plan["id"]}}
    await put(wallet.server, "products", "trial", product)
    await wallet.travel(LAST_OF_JANUARY - 7 * DAY)
    sub_id = await wallet.subscribed("trial")
    pro = (await wallet.assets())["pro"]
    assert (pro["origin"], pro["is_trial_period"]) == ("trial", True)
    assert timedelta(0) <= await wallet.paid_until() - LAST_OF_JANUARY < timedelta(minutes=1)
    await wallet.renew(sub_id)
    await read(wallet, sub_id)
    paid = (await wallet.assets())["pro"]
    assert (paid["origin"], paid["is_trial_period"]) == ("renewal", False)
    assert await wallet.paid_until() == datetime(2027, 2, 28, 10, tzinfo=UTC)
    assert paid["product_id"] == plan["id"]


def cycle(unit: str, value: str) -> dict[str, Any]:
    return {
        "frequency": {"interval_unit": unit, "interval_count": 1},
        "pricing_scheme": {"fixed_price": {"currency_code": "USD", "value": value}},
    }


async def test_a_trial_of_a_product_whose_plan_has_none_is_not_granted(wallet: Wallet) -> None:
    product = {**PRODUCTS["trial"], "walletpay": {"plan_id": MONTHLY}}
    await put(wallet.server, "products", "trial", product)
    await wallet.subscribed("trial")
    assert [(await wallet.assets())["pro"]["origin"], await wallet.kinds()] == ["purchase", ["grant"]]


async def test_a_first_payment_that_is_declined_grants_nothing(wallet: Wallet) -> None:
    sub = await wallet.subscribe()
    await wallet.approve(sub["approve_link_href"], fault="decline")
    again = await read(wallet, sub["id"])
    assert (again["status"], await wallet.assets()) == ("APPROVAL_PENDING", {})
    await wallet.approve(again["approve_link_href"])
    assert (await read(wallet, sub["id"]))["status"] == "ACTIVE"
    assert await wallet.kinds() == ["grant"]


async def test_an_approved_subscription_that_is_not_active_yet_grants_nothing(wallet: Wallet) -> None:
    sub = await wallet.subscribe()
    await wallet.approve(sub["approve_link_href"], fault="later")
    approved = await read(wallet, sub["id"])
    assert (approved["status"], approved["approve_link_href"]) == ("APPROVED", "")
    assert await wallet.assets() == {}
    await wallet.control("begin", subscription_id=sub["id"])
    assert (await read(wallet, sub["id"]))["status"] == "ACTIVE"
    assert await wallet.kinds() == ["grant"]


async def test_a_subscription_that_is_not_approved_in_three_days_has_expired(wallet: Wallet) -> None:
    await wallet.travel(NEW_YEAR)
    sub = await wallet.subscribe()
    await wallet.travel(NEW_YEAR + timedelta(hours=71))
    assert (await read(wallet, sub["id"]))["status"] == "APPROVAL_PENDING"
    await wallet.travel(NEW_YEAR + timedelta(hours=73))
    expired = await read(wallet, sub["id"])
    assert (expired["status"], expired["approve_link_href"]) == ("EXPIRED", "")
    await wallet.travel(NEW_YEAR + timedelta(hours=80))
    assert (await read(wallet, sub["id"], "/fetch"))["status"] == "EXPIRED"
    await read(wallet, sub["id"])
    rows = await wallet.rows("select status, check_at from wallet_subscriptions where uid = $1", wallet.uid)
    assert rows == [("EXPIRED", None)]


async def test_a_renewal_of_a_changed_plan_grants_the_product_of_that_plan(wallet: Wallet) -> None:
    sub_id = await wallet.subscribed()
    revised = await wallet.platform("POST", f"/v1/billing/subscriptions/{sub_id}/revise", {"plan_id": YEARLY})
    link = next(link["href"] for link in revised["links"] if link["rel"] == "approve")
    await wallet.approve(link)
    await read(wallet, sub_id)
    assert (await wallet.assets())["pro"]["bp_product_id"] == "month"
    await wallet.renew(sub_id)
    await read(wallet, sub_id)
    pro = (await wallet.assets())["pro"]
    assert (pro["bp_product_id"], pro["product_id"]) == ("pro_year", YEARLY)  # It comes first in the alphabet.
    assert pro["valid_seconds"] > 364 * 86_400


async def test_a_changed_plan_of_the_same_price_takes_effect_with_its_next_payment(wallet: Wallet) -> None:
    cycle = {
        "frequency": {"interval_unit": "MONTH", "interval_count": 1}, "tenure_type": "REGULAR", "sequence": 1,
        "total_cycles": 0, "pricing_scheme": {"fixed_price": {"currency_code": "USD", "value": "9.99"}},
    }  # fmt: skip
    body = {"product_id": PRO, "name": "Gold", "billing_cycles": [cycle], "payment_preferences": {}}
    gold: str = (await wallet.platform("POST", "/v1/billing/plans", body))["id"]
    product = {"type": "subscription", "asset": "gold", "period": "P1M", "walletpay": {"plan_id": gold}}
    await put(wallet.server, "products", "gold", product)
    sub_id = await wallet.subscribed()
    for plan in (gold, MONTHLY):
        revised = await wallet.platform("POST", f"/v1/billing/subscriptions/{sub_id}/revise", {"plan_id": plan})
        await wallet.approve(next(link["href"] for link in revised["links"] if link["rel"] == "approve"))
        await read(wallet, sub_id)
        assert error(await wallet.upgrade(sub_id)) == (400, "invalid_operation")
        for _ in range(2):
            await wallet.renew(sub_id)
            await read(wallet, sub_id)
    statement = "select name, bp_product_id from asset_entries where uid = $1 and kind = 'grant' order by ends_at"
    first, golden, last = [("pro", "month")], [("gold", "gold")] * 2, [("pro", "month")] * 2
    assert await wallet.rows(statement, wallet.uid) == first + golden + last
    assert (await wallet.upgrade(sub_id))[0] == 200


async def test_a_subscription_whose_product_was_removed_is_granted_as_it_was_bought(wallet: Wallet) -> None:
    sub = await wallet.subscribe()
    await wallet.server.services.configs.delete(
        ConfigKey("default", "products", "month"), author="test", origin=COMMAND
    )
    await wallet.approve(sub["approve_link_href"])
    await read(wallet, sub["id"])
    assert (await wallet.assets())["pro"]["bp_product_id"] == "month"


async def test_a_subscription_of_another_user_does_not_exist(wallet: Wallet) -> None:
    sub_id, other = await wallet.subscribed(), await another(wallet)
    for foreign_id in (sub_id, "I-BW452GLLEP1G", "..%2Fx", "x" * 500):
        path = f"walletpay_sub/{foreign_id}"
        answers = [await other.get(f"{path}{how}") for how in ("", "/sync", "/fetch", "/sync_upgrade")]
        answers.append(await other.upgrade(foreign_id))
        assert [error(answer) for answer in answers] == [(404, "item_not_found")] * 5


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({}, (400, "invalid_parameter")),
        ({"product_id": "month", "country_code": "us"}, (400, "invalid_parameter")),
        ({"product_id": "coins"}, (400, "invalid_parameter")),
        ({"product_id": "month", "return_url": "http://app.example/"}, (400, "invalid_parameter")),
        ({"product_id": "month", "return_url": "https://other.example/"}, (400, "invalid_parameter")),
        ({"product_id": "month", "return_url": "https://app.example@other.example/"}, (400, "invalid_parameter")),
        ({"product_id": "month", "return_url": "https://app.example:8443/"}, (400, "invalid_parameter")),
        ({"product_id": "month", "return_url": "https://app.example:x/"}, (400, "invalid_parameter")),
        ({"product_id": "month", "return_url": "https://[app.example/"}, (400, "invalid_parameter")),
        ({"product_id": "month", "return_url": "https://app.example\\.other.example/"}, (400, "invalid_parameter")),
        ({"product_id": "month", "return_url": ""}, (400, "invalid_parameter")),
        ({"product_id": "month", "cancel_url": "javascript:alert(1)"}, (400, "invalid_parameter")),
        ({"product_id": "month", "cancel_url": "https://app.example/" + "x" * 2048}, (400, "invalid_parameter")),
        ({"product_id": "nothing"}, (422, "config_invalid")),
        ({"product_id": "without_plan"}, (422, "config_invalid")),
        ({"product_id": "elsewhere"}, (422, "config_invalid")),
    ],
)
async def test_a_subscription_that_cannot_be_made_is_refused(
    wallet: Wallet, body: dict[str, Any], expected: tuple[int, str]
) -> None:
    await put(wallet.server, "products", "without_plan", {**PRODUCTS["month"], "walletpay": {}})
    other = {**PRODUCTS["month"], "walletpay": {"config": "Other", "plan_id": MONTHLY}}
    await put(wallet.server, "products", "elsewhere", other)
    assert error(await wallet.post("walletpay_sub", body)) == expected
    assert await wallet.rows("select 1 from wallet_subscriptions where uid = $1", wallet.uid) == []


async def test_a_config_without_pages_to_return_to_needs_them_in_requests(wallet: Wallet) -> None:
    await wallet.configure(return_url=None)
    assert error(await wallet.post("walletpay_sub", {"product_id": "month"})) == (422, "config_invalid")
    sub = await wallet.subscribe(return_url="https://app.example/thanks")
    assert (await wallet.approve(sub["approve_link_href"])).startswith("https://app.example/thanks?")


async def test_a_plan_that_the_platform_does_not_have_is_a_fault_of_the_backend(wallet: Wallet) -> None:
    await put(wallet.server, "products", "month", {**PRODUCTS["month"], "walletpay": {"plan_id": "P-NONE"}})
    assert error(await wallet.post("walletpay_sub", {"product_id": "month"})) == (400, "backend unavailable")
    assert await wallet.rows("select 1 from wallet_subscriptions where uid = $1", wallet.uid) == []


async def test_the_plan_depends_on_the_country(wallet: Wallet) -> None:
    plans = {"plan_id": MONTHLY, "plans": {"JP": YEARLY}}
    await put(wallet.server, "products", "month", {**PRODUCTS["month"], "walletpay": plans})
    assert (await wallet.subscribe(country_code="JP"))["plan_id"] == YEARLY
    assert (await wallet.subscribe(country_code="US"))["plan_id"] == MONTHLY
    asked = [call["body"] for call in wallet.calls("/v1/billing/subscriptions")]
    assert asked[0]["custom_id"] == wallet.uid
    address = asked[0]["subscriber"]["shipping_address"]["address"]
    assert address["country_code"] == "JP"
