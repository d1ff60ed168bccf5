"""The plan of a subscription is changed at the platform, and its payments count for the right plan.

As published in PayPal's subscriptions v1 OpenAPI: `revise` changes `plan_id` of the subscription once the payer
consents, and the new plan is paid from the next cycle on; transactions do not name a plan; `update_time` is the
time of the last change; `update-pricing-schemes` changes the prices of a plan. No webhook is delivered here, so a
change is first read when the test reads it.
"""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.app.payments.wallet.wallets import MONTHLY, PRO, YEARLY, Wallet, put

START = datetime(2027, 3, 1, 12, tzinfo=UTC)
GRANTS = "select name, bp_product_id from asset_entries where uid = $1 and kind = 'grant' order by ends_at"


@pytest.fixture
async def gold(wallet: Wallet) -> str:
    """A plan of the same price and period as the monthly one, whose product grants another asset."""
    cycle = {
        "frequency": {"interval_unit": "MONTH", "interval_count": 1}, "tenure_type": "REGULAR", "sequence": 1,
        "total_cycles": 0, "pricing_scheme": {"fixed_price": {"currency_code": "USD", "value": "9.99"}},
    }  # fmt: skip
    body = {"product_id": PRO, "name": "Gold", "billing_cycles": [cycle], "payment_preferences": {}}
    plan_id: str = (await wallet.platform("POST", "/v1/billing/plans", body))["id"]
    product = {"type": "subscription", "asset": "gold", "period": "P1M", "walletpay": {"plan_id": plan_id}}
    await put(wallet.server, "products", "gold", product)
    await wallet.travel(START)
    return plan_id


async def revise(wallet: Wallet, sub_id: str, plan_id: str) -> None:
    """Change the plan of a subscription, to which the payer consents."""
    revised = await wallet.platform("POST", f"/v1/billing/subscriptions/{sub_id}/revise", {"plan_id": plan_id})
    await wallet.approve(next(link["href"] for link in revised["links"] if link["rel"] == "approve"))


async def reprice(wallet: Wallet, plan_id: str, value: str) -> None:
    price = {"fixed_price": {"currency_code": "USD", "value": value}}
    body = {"pricing_schemes": [{"billing_cycle_sequence": 1, "pricing_scheme": price}]}
    assert await wallet.platform("POST", f"/v1/billing/plans/{plan_id}/update-pricing-schemes", body) is None


async def days_later(wallet: Wallet, days: int) -> None:
    await wallet.travel(wallet.server.services.clock.now("default") + timedelta(days=days))


async def granted(wallet: Wallet, sub_id: str) -> list[Any]:
    assert (await wallet.sync(sub_id))[0] == 200
    return await wallet.rows(GRANTS, wallet.uid)


async def test_a_change_to_a_plan_of_the_same_price_that_is_read_with_its_first_payment(
    wallet: Wallet, gold: str
) -> None:
    sub_id = await wallet.subscribed()
    await days_later(wallet, 10)
    await revise(wallet, sub_id, gold)
    await wallet.renew(sub_id)
    assert await granted(wallet, sub_id) == [("pro", "month"), ("gold", "gold")]
    await wallet.renew(sub_id)
    assert await granted(wallet, sub_id) == [("pro", "month"), ("gold", "gold"), ("gold", "gold")]


@pytest.mark.parametrize("plan", ["gold", "year"])
async def test_a_change_after_a_payment_that_was_not_read_before_leaves_the_payment_to_the_old_plan(
    wallet: Wallet, gold: str, plan: str
) -> None:
    sub_id = await wallet.subscribed()
    await reprice(wallet, MONTHLY, "7.99")
    await wallet.renew(sub_id)
    await days_later(wallet, 10)
    await revise(wallet, sub_id, gold if plan == "gold" else YEARLY)
    assert await granted(wallet, sub_id) == [("pro", "month"), ("pro", "month")]
    await wallet.renew(sub_id)
    assert (await granted(wallet, sub_id))[-1] == (("gold", "gold") if plan == "gold" else ("pro", "pro_year"))


async def test_a_change_seconds_after_a_payment_is_told_by_the_next_billing_time(wallet: Wallet, gold: str) -> None:
    sub_id = await wallet.subscribed()
    await wallet.renew(sub_id)
    await revise(wallet, sub_id, YEARLY)  # `update_time` is within the second of the payment.
    assert await granted(wallet, sub_id) == [("pro", "month"), ("pro", "month")]


async def test_payments_of_another_period_that_were_not_read_are_told_by_their_distance(
    wallet: Wallet, gold: str
) -> None:
    sub_id = await wallet.subscribed()
    await wallet.renew(sub_id)
    await revise(wallet, sub_id, YEARLY)
    await wallet.renew(sub_id, times=2)
    months, years = [("pro", "month")] * 2, [("pro", "pro_year")] * 2
    assert await granted(wallet, sub_id) == months + years


async def test_the_first_payment_is_of_the_plan_that_was_subscribed_to(wallet: Wallet, gold: str) -> None:
    sub = await wallet.subscribe()
    await wallet.approve(sub["approve_link_href"])
    await revise(wallet, sub["id"], gold)
    assert await granted(wallet, sub["id"]) == [("pro", "month")]
    await wallet.renew(sub["id"])
    assert await granted(wallet, sub["id"]) == [("pro", "month"), ("gold", "gold")]


async def test_a_change_during_a_trial_counts_from_the_first_payment(wallet: Wallet, gold: str) -> None:
    sub_id = await wallet.subscribed("trial")
    await revise(wallet, sub_id, gold)
    assert await granted(wallet, sub_id) == [("pro", "trial")]
    await wallet.renew(sub_id)
    assert await granted(wallet, sub_id) == [("pro", "trial"), ("gold", "gold")]


async def test_a_payment_between_two_changes_is_of_the_first_one(wallet: Wallet, gold: str) -> None:
    sub_id = await wallet.subscribed()
    await revise(wallet, sub_id, gold)
    assert await granted(wallet, sub_id) == [("pro", "month")]
    await wallet.renew(sub_id)
    await days_later(wallet, 10)
    await revise(wallet, sub_id, MONTHLY)
    assert await granted(wallet, sub_id) == [("pro", "month"), ("gold", "gold")]
    await wallet.renew(sub_id)
    assert await granted(wallet, sub_id) == [("pro", "month"), ("gold", "gold"), ("pro", "month")]


@pytest.mark.parametrize("change", ["higher", "lower"])
async def test_another_price_of_the_same_plan_is_no_other_plan(wallet: Wallet, gold: str, change: str) -> None:
    sub_id = await wallet.subscribed()
    await revise(wallet, sub_id, gold)
    await wallet.sync(sub_id)
    await wallet.renew(sub_id)
    await reprice(wallet, gold, "12.00" if change == "higher" else "5.00")
    await wallet.sync(sub_id)
    await wallet.renew(sub_id)
    assert await granted(wallet, sub_id) == [("pro", "month"), ("gold", "gold"), ("gold", "gold")]
