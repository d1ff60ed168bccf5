"""Users keep what they pay for while PayPal renews it, and lose it when a payment has failed.

PayPal bills at 10:00 UTC or later of the day of `billing_info.next_billing_time`. A day that a month lacks is the
first of the next month ("How subscription billing cycles work",
https://developer.paypal.com/docs/paypal-payments-standard/integration-guide/subscription-billing-cycles/).
`failed_payments_count` and `last_failed_payment` show a payment that has failed (`subscription` in
`openapi/billing_subscriptions_v1.json` of paypal/paypal-rest-api-specifications).
"""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from storage.assets.differences import find_differences
from storage.jobs.jobs import RunScheduled
from streams.tasks import background
from tests.app.callers import work_off
from tests.app.payments.wallet.wallets import WEBHOOK, Wallet, add_plan
from tests.waiting import until
from vendors.sandbox.faults import key_of

MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)
LAST_OF_JANUARY = datetime(2027, 1, 31, 12, tzinfo=UTC)
BILLED_NEXT = datetime(2027, 3, 1, 10, tzinfo=UTC)
PAID_END = datetime(2027, 2, 28, 12, tzinfo=UTC)
"""Within a minute."""


def end_of(asset: dict[str, Any]) -> datetime:
    return datetime.fromisoformat(asset["expire_time"])


async def differs_from_ledger(wallet: Wallet) -> bool:
    return [difference async for difference in find_differences(wallet.server.services.database)] != []


async def at(wallet: Wallet, moment: datetime) -> dict[str, Any]:
    """Move the clocks, read back what is due, and return the user's asset."""
    await wallet.travel(moment)
    await wallet.reconcile()
    pro: dict[str, Any] = (await wallet.assets())["pro"]
    return pro


@pytest.mark.parametrize(
    ("bought", "billed"),
    [
        (datetime(2027, 1, 31, 12, tzinfo=UTC), datetime(2027, 3, 1, 10, tzinfo=UTC)),
        (datetime(2027, 1, 29, 1, tzinfo=UTC), datetime(2027, 3, 1, 10, tzinfo=UTC)),
        (datetime(2028, 1, 30, 12, tzinfo=UTC), datetime(2028, 3, 1, 10, tzinfo=UTC)),
        (datetime(2027, 5, 31, 12, tzinfo=UTC), datetime(2027, 7, 1, 10, tzinfo=UTC)),
        (datetime(2027, 3, 15, 1, tzinfo=UTC), datetime(2027, 4, 15, 10, tzinfo=UTC)),
    ],
)
async def test_a_renewal_leaves_no_gap(wallet: Wallet, bought: datetime, billed: datetime) -> None:
    await wallet.travel(bought)
    sub_id = await wallet.subscribed()
    paid_end = await wallet.paid_until()
    assert paid_end < billed
    for moment in (paid_end - MINUTE, paid_end + MINUTE, billed - MINUTE, billed + MINUTE, billed + DAY):
        assert (await at(wallet, moment))["valid_seconds"] > 0, moment
    statement = "select kind, starts_at, ends_at, grace_ends_at from asset_entries where uid = $1 order by entry_id"
    first, second = await wallet.rows(statement, wallet.uid)
    assert (first[0], first[2:]) == ("grant", (paid_end, billed + DAY))
    assert second[:2] == ("grant", billed)
    [(status, _)] = await wallet.rows(
        "select status, check_at from wallet_subscriptions where subscription_id = $1", sub_id
    )
    assert status == "ACTIVE"
    assert not await differs_from_ledger(wallet)


async def test_the_reads_of_a_renewal_are_before_it_at_it_and_when_it_is_billed(wallet: Wallet) -> None:
    await wallet.travel(LAST_OF_JANUARY)
    await wallet.subscribed()
    paid_end, reads = await wallet.paid_until(), []
    moment = paid_end - 3 * DAY
    while moment < BILLED_NEXT + 2 * MINUTE:
        await at(wallet, moment)
        [(check_at,)] = await wallet.rows("select check_at from wallet_subscriptions where uid = $1", wallet.uid)
        assert check_at > moment
        reads.append(check_at)
        moment = check_at + timedelta(seconds=1)
    assert [before for before in reads if before < paid_end][-1] > paid_end - DAY - MINUTE
    assert paid_end in reads
    assert BILLED_NEXT in reads
    assert len(reads) <= 7


@pytest.mark.parametrize("webhooks", [True, False])
async def test_a_failed_payment_ends_the_asset_with_the_paid_period(wallet: Wallet, webhooks: bool) -> None:
    if webhooks:
        url = f"{wallet.server.url}/bp/webhook/walletpay/default/Default"
        await wallet.control("webhook", id=WEBHOOK, url=url)
    await wallet.travel(LAST_OF_JANUARY)
    sub_id = await wallet.subscribed()
    await wallet.control("decline", subscription_id=sub_id)
    assert (await at(wallet, BILLED_NEXT - MINUTE))["valid_seconds"] > 0
    await wallet.travel(BILLED_NEXT + 2 * MINUTE)
    if webhooks:
        await until(lambda: wallet.sandbox.sandbox.deliveries.is_idle)
        await wallet.rows("delete from procrastinate_jobs where task_name = $1", RunScheduled.task)
        await work_off(wallet.server.services)
    else:
        await wallet.reconcile()
    pro = (await wallet.assets())["pro"]
    assert (pro["valid_seconds"], end_of(pro)) == (0, await wallet.paid_until())
    assert abs(end_of(pro) - PAID_END) < MINUTE
    pro = await at(wallet, BILLED_NEXT + 5 * DAY + 2 * MINUTE)  # The payment is repeated.
    assert (pro["origin"], pro["valid_seconds"] > 0) == ("renewal", True)
    assert await wallet.kinds() == ["grant", "extend", "grant"]
    assert not await differs_from_ledger(wallet)


async def test_a_failed_payment_counts_until_the_next_one_is_made(wallet: Wallet) -> None:
    """PayPal sets `failed_payments_count` to 0 when a suspended subscription is activated, without a payment."""
    await wallet.travel(LAST_OF_JANUARY)
    sub_id = await wallet.subscribed()
    await wallet.control("decline", subscription_id=sub_id)
    await at(wallet, BILLED_NEXT + 2 * MINUTE)
    await wallet.control("bill_late", subscription_id=sub_id, hours=1)
    for action in ("suspend", "activate"):
        await wallet.platform("POST", f"/v1/billing/subscriptions/{sub_id}/{action}", {"reason": "support"})
    await wallet.sync(sub_id)
    pro = await at(wallet, BILLED_NEXT + 4 * MINUTE)
    assert (pro["valid_seconds"], end_of(pro)) == (0, await wallet.paid_until())


async def test_a_failing_subscription_is_read_every_hour_until_its_payment_is_repeated(wallet: Wallet) -> None:
    """PayPal names the time: `next_payment_retry_time` (`failed_payment_details` of its OpenAPI)."""
    await wallet.travel(LAST_OF_JANUARY)
    sub_id = await wallet.subscribed()
    await wallet.control("decline", subscription_id=sub_id)
    statement = "select check_at from wallet_subscriptions where uid = $1"
    await at(wallet, BILLED_NEXT + MINUTE)
    await wallet.control("bill_late", subscription_id=sub_id, hours=14)
    reads = []
    for moment in (DAY, 5 * DAY - 30 * MINUTE, 5 * DAY + MINUTE, 5 * DAY + 180 * MINUTE):
        await at(wallet, BILLED_NEXT + moment)
        [(check_at,)] = await wallet.rows(statement, wallet.uid)
        reads.append(round((check_at - BILLED_NEXT - moment) / MINUTE))
    assert reads == [60, 30, 1, 60]


async def test_a_subscription_that_expires_is_cancelled_at_the_time_of_the_platform(wallet: Wallet) -> None:
    await wallet.travel(LAST_OF_JANUARY)
    await add_plan(wallet, "once", title="Pro for a week", unit="WEEK", period="P1W", price="3.00", cycles=1)
    sub_id = await wallet.subscribed("once")
    assert (await wallet.sync(sub_id))[1]["walletpay_sub"]["canceled_ts"] == 0
    await wallet.travel(LAST_OF_JANUARY + 8 * DAY)
    _, answer = await wallet.sync(sub_id)
    sub, [pro] = answer["walletpay_sub"], answer["assets"]
    expired_at = datetime(2027, 2, 7, 10, tzinfo=UTC)
    assert (sub["status"], sub["canceled_ts"]) == ("EXPIRED", expired_at.timestamp())
    assert (pro["sub_canceled"], pro["sub_canceled_ts"]) == (True, sub["canceled_ts"])


async def test_a_platform_that_cannot_be_read_ends_the_asset_after_the_tolerance(wallet: Wallet) -> None:
    await wallet.configure(renewal_tolerance_s=3600)
    await wallet.travel(LAST_OF_JANUARY)
    await wallet.subscribed()
    await wallet.configure(client_secret=key_of(fault="unauthorized"))
    assert (await at(wallet, BILLED_NEXT + 59 * MINUTE))["valid_seconds"] > 0
    assert (await at(wallet, BILLED_NEXT + 61 * MINUTE))["valid_seconds"] == 0
    await wallet.configure(client_secret="sandbox")
    pro = await at(wallet, BILLED_NEXT + 65 * MINUTE)
    assert (pro["origin"], pro["valid_seconds"] > 0) == ("renewal", True)


async def test_a_read_that_ends_late_does_not_replace_a_later_one(wallet: Wallet) -> None:
    await wallet.travel(LAST_OF_JANUARY)
    sub_id = await wallet.subscribed()
    await wallet.configure(client_secret=key_of(delay_ms=250))
    wallet.sandbox.bill.clear()
    async with background(wallet.sync(sub_id)) as slow:
        await until(lambda: is_read(wallet, sub_id))
        await wallet.configure(client_secret="sandbox")
        await wallet.platform("POST", f"/v1/billing/subscriptions/{sub_id}/suspend", {"reason": "unpaid"})
        _, answer = await wallet.sync(sub_id)
        assert answer["walletpay_sub"]["status"] == "SUSPENDED"
        assert (await slow)[0] == 200
    assert end_of((await wallet.assets())["pro"]) == await wallet.paid_until()
    assert await wallet.rows("select status from wallet_subscriptions where uid = $1", wallet.uid) == [
        ("SUSPENDED",)
    ]
    assert await wallet.kinds() == ["grant", "suspend"]


def is_read(wallet: Wallet, sub_id: str) -> bool:
    """Whether the platform has read a subscription for an answer, which is under way."""
    return any(call.asked.get("path", "").endswith(sub_id) for call in wallet.sandbox.bill.since())


async def test_the_time_of_a_cancellation_is_the_platforms(wallet: Wallet) -> None:
    await wallet.travel(LAST_OF_JANUARY)
    sub_id = await wallet.subscribed()
    at_platform = LAST_OF_JANUARY + 5 * DAY
    await wallet.travel(at_platform)
    await wallet.platform("POST", f"/v1/billing/subscriptions/{sub_id}/cancel", {"reason": "enough"})
    await wallet.travel(at_platform + timedelta(hours=9))
    _, answer = await wallet.sync(sub_id)
    sub, [pro] = answer["walletpay_sub"], answer["assets"]
    assert abs(sub["canceled_ts"] - at_platform.timestamp()) < 60
    assert datetime.fromisoformat(pro["sub_canceled_time"]).timestamp() == pro["sub_canceled_ts"]
    assert pro["sub_canceled_ts"] == sub["canceled_ts"]
    assert end_of(pro) == await wallet.paid_until()
    assert not await differs_from_ledger(wallet)


@pytest.mark.parametrize("completed", [True, False])
async def test_a_pending_payment_does_not_give_the_next_period(wallet: Wallet, completed: bool) -> None:
    """PayPal moves `next_billing_time` with the payment, also while the sale is `pending`, as an eCheck is."""
    await wallet.travel(LAST_OF_JANUARY)
    sub_id = await wallet.subscribed()
    await wallet.control("pend", subscription_id=sub_id)
    paid_end = await wallet.paid_until()
    assert (await at(wallet, BILLED_NEXT + MINUTE))["valid_seconds"] > 0
    pro = await at(wallet, BILLED_NEXT + 2 * DAY)
    assert end_of(pro) == paid_end + 3 * DAY
    assert (await at(wallet, paid_end + 3 * DAY + MINUTE))["valid_seconds"] == 0
    [pending] = [sale for sale in (await wallet.books())["payments"] if sale["status"] == "PENDING"]
    await wallet.control("settle_sale", sale_id=pending["id"], completed=completed)
    pro = await at(wallet, paid_end + 5 * DAY)
    assert (pro["valid_seconds"] > 0) is completed
    assert completed or end_of(pro) == paid_end
    assert await wallet.kinds() == ["grant", "extend", "grant" if completed else "extend"]
    assert not await differs_from_ledger(wallet)
