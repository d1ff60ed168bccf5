"""PayPal's subscriptions: approval, renewals by the merchant's clock, refunds, changes of plan and the end."""

from datetime import timedelta

import pytest

from streams.wire.ids import new_id
from streams.wire.model import Model
from streams.wire.money import Money
from tests.calendar.clock import utc_now
from tests.vendors.payments.paypal.calls import CANCEL, Merchant
from vendors.payments.paypal.errors import PayPalRefused
from vendors.payments.paypal.fields import Link
from vendors.payments.paypal.subscriptions import BillingCycle, Plan
from vendors.sandbox.payments.paypal.plans import MONTHLY, TRIAL, YEARLY

MONTHLY_PRICE = Money(999, "USD")


class Revision(Model):
    links: list[Link]


async def test_a_subscription_is_active_and_paid_once_it_is_approved(shop: Merchant):
    made = await shop.subscribe()
    assert (made.status, made.plan_id, made.custom_id) == ("APPROVAL_PENDING", MONTHLY, "user-7")

    _, brought = await shop.approve(made.approve_url)

    found = await shop.paypal.subscription(made.id)
    (payment,) = await shop.transactions(made.id)
    assert brought["subscription_id"] == made.id
    assert (found.status, found.approve_url, found.next_payment) == ("ACTIVE", "", MONTHLY_PRICE)
    assert (payment.amount, payment.status) == (MONTHLY_PRICE, "COMPLETED")
    assert found.last_payment is not None
    assert (found.last_payment.amount, found.last_payment.time) == (MONTHLY_PRICE, payment.time)
    assert found.next_payment_at is not None
    assert timedelta(days=27) < found.next_payment_at - payment.time < timedelta(days=32)


async def test_a_year_of_payments_passes_with_the_clock(shop: Merchant):
    made = await shop.subscribed()

    await shop.move_clock(370)  # What begins on the 29th or later is renewed on the 1st after a short month.

    payments = await shop.transactions(made.id)
    assert len(payments) == 13
    assert [payment.time for payment in payments] == sorted(payment.time for payment in payments)
    assert {payment.amount for payment in payments} == {MONTHLY_PRICE}
    now = utc_now()
    first = await shop.paypal.transactions(made.id, start=now - timedelta(days=1), end=now)
    assert list(first) == payments[:1]


async def test_payments_can_be_taken_one_by_one(shop: Merchant):
    made = await shop.subscribed()

    await shop.control("renew", subscription_id=made.id, times=2)

    assert len(await shop.transactions(made.id)) == 3


async def test_a_trial_is_active_without_a_payment(shop: Merchant):
    made = await shop.subscribed(TRIAL)

    assert (made.status, made.last_payment, made.next_payment) == ("ACTIVE", None, MONTHLY_PRICE)
    assert await shop.transactions(made.id) == []
    await shop.move_clock(8)
    assert [payment.amount for payment in await shop.transactions(made.id)] == [MONTHLY_PRICE]


async def test_plans_say_what_they_cost_and_whether_they_have_a_trial(shop: Merchant):
    plans = {plan_id: await shop.paypal.plan(plan_id) for plan_id in (MONTHLY, YEARLY, TRIAL)}

    assert {plan_id: plan.has_trial for plan_id, plan in plans.items()} == {
        MONTHLY: False,
        YEARLY: False,
        TRIAL: True,
    }
    assert plans[YEARLY].payment() == Money(9900, "USD")
    assert plans[TRIAL].payment(3) == Money(2997, "USD")


@pytest.mark.parametrize(
    ("taxes", "payment"),
    [
        ({"percentage": "10", "inclusive": True}, 999),
        ({"percentage": "10", "inclusive": False}, 1099),
        ({"percentage": "7.525", "inclusive": False}, 1074),
        ({"percentage": "0", "inclusive": False}, 999),
        ({"percentage": "100", "inclusive": False}, 1998),
    ],
)
def test_taxes_that_a_price_does_not_include_are_added(taxes: dict[str, object], payment: int):
    price = {"fixed_price": {"currency_code": "USD", "value": "9.99"}}
    cycle = {"sequence": 1, "tenure_type": "REGULAR", "pricing_scheme": price}

    plan = Plan.model_validate({"id": "P-1", "billing_cycles": [cycle], "taxes": taxes})

    assert plan.payment() == Money(payment, "USD")


def test_a_plan_without_a_fixed_price_has_no_known_payment():
    assert Plan(billing_cycles=[BillingCycle(sequence=1)]).payment() is None


async def test_a_cancelled_approval_leaves_the_subscription_pending(shop: Merchant):
    made = await shop.subscribe()

    page, _ = await shop.approve(made.approve_url, action="cancel")

    assert page == CANCEL
    assert (await shop.paypal.subscription(made.id)).status == "APPROVAL_PENDING"


async def test_a_declined_first_payment_keeps_the_subscription_pending(shop: Merchant):
    made = await shop.subscribe()
    await shop.approve(made.approve_url, fault="decline")

    found = await shop.paypal.subscription(made.id)

    assert (found.status, found.approve_url != "") == ("APPROVAL_PENDING", True)
    assert await shop.transactions(made.id) == []


async def test_a_subscription_may_become_active_some_time_after_its_approval(shop: Merchant):
    made = await shop.subscribe()
    await shop.approve(made.approve_url, fault="later")
    approved = await shop.paypal.subscription(made.id)

    await shop.control("begin", subscription_id=made.id)

    assert (approved.status, approved.approve_url, approved.last_payment) == ("APPROVED", "", None)
    assert (await shop.paypal.subscription(made.id)).status == "ACTIVE"


async def test_a_subscription_that_nobody_approves_is_deleted(shop: Merchant):
    made = await shop.subscribe()
    await shop.move_clock(3.1)

    with pytest.raises(PayPalRefused) as raised:
        await shop.paypal.subscription(made.id)

    assert raised.value.not_found


async def test_a_cancelled_subscription_takes_no_further_payment(shop: Merchant):
    made = await shop.subscribed()

    await shop.paypal.cancel_subscription("row:cancel", made.id, reason="upgraded")
    await shop.paypal.cancel_subscription("row:cancel", made.id, reason="upgraded")
    await shop.move_clock(100)

    found = await shop.paypal.subscription(made.id)
    assert (found.status, found.next_payment_at) == ("CANCELLED", None)
    assert found.status_update_time is not None
    assert len(await shop.transactions(made.id)) == 1


async def test_a_failed_renewal_is_tried_again_later(shop: Merchant):
    made = await shop.subscribed()
    await shop.control("decline", subscription_id=made.id)

    await shop.move_clock(32)  # A day after the longest month, and before the next attempt after the shortest one.
    failed = await shop.paypal.subscription(made.id)
    await shop.move_clock(38)
    paid = await shop.paypal.subscription(made.id)

    assert (failed.status, failed.billing_info.failed_payments_count) == ("ACTIVE", 1)
    assert (paid.status, paid.billing_info.failed_payments_count) == ("ACTIVE", 0)
    assert len(await shop.transactions(made.id)) == 2


async def test_a_sale_is_refunded_in_parts_up_to_its_amount(shop: Merchant):
    made = await shop.subscribed()
    (payment,) = await shop.transactions(made.id)

    first = await shop.paypal.refund_sale("row:refund", payment.id, Money(333, "USD"))
    repeated = await shop.paypal.refund_sale("row:refund", payment.id, Money(333, "USD"))

    sale = await shop.paypal.sale(payment.id)
    assert repeated == first
    assert (first.status, first.amount, first.sale_id) == ("COMPLETED", Money(333, "USD"), payment.id)
    assert await shop.paypal.sale_refund(first.id) == first
    assert (sale.state, sale.billing_agreement_id) == ("partially_refunded", made.id)
    assert (await shop.transactions(made.id))[0].status == "PARTIALLY_REFUNDED"
    with pytest.raises(PayPalRefused, match="REFUND_EXCEEDED_TRANSACTION_AMOUNT"):
        await shop.paypal.refund_sale(new_id(), payment.id, Money(667, "USD"))
    await shop.paypal.refund_sale(new_id(), payment.id, Money(666, "USD"))
    with pytest.raises(PayPalRefused, match="TRANSACTION_ALREADY_REFUNDED"):
        await shop.paypal.refund_sale(new_id(), payment.id, Money(1, "USD"))


async def test_a_revision_changes_the_plan_at_once_and_the_payment_at_the_next_period(shop: Merchant):
    made = await shop.subscribed()
    path = f"/v1/billing/subscriptions/{made.id}/revise"
    revision = await shop.paypal.post(new_id(), path, {"plan_id": YEARLY}, Revision)

    assert (await shop.paypal.subscription(made.id)).plan_id == MONTHLY

    await shop.approve(next(link.href for link in revision.links if link.rel == "approve"))
    revised = await shop.paypal.subscription(made.id)
    await shop.move_clock(33)

    assert (revised.plan_id, len(await shop.transactions(made.id))) == (YEARLY, 2)
    assert (await shop.transactions(made.id))[1].amount == Money(9900, "USD")


async def test_a_payment_that_fails_three_times_is_added_to_the_next_one(shop: Merchant):
    """See "Payment failures and recovering balances", developer.paypal.com/docs/subscriptions/customize."""
    made = await shop.subscribed()
    await shop.control("decline", subscription_id=made.id, times=3)

    await shop.move_clock(45)  # Ten days after a month, both attempts that follow have failed.
    failed = await shop.paypal.subscription(made.id)
    await shop.move_clock(65)
    payments = await shop.transactions(made.id)

    assert (failed.billing_info.failed_payments_count, failed.retry_at) == (1, None)
    assert [payment.amount.amount for payment in payments] == [999, 1998]


async def test_a_subscription_that_is_activated_again_is_paid_on_that_day(shop: Merchant):
    """Payments that were due meanwhile are left out."""
    made = await shop.subscribed()
    path = f"/v1/billing/subscriptions/{made.id}"
    await shop.paypal.command("row:suspend", f"{path}/suspend", {"reason": "pause"})
    await shop.move_clock(100)
    suspended = await shop.transactions(made.id)
    await shop.paypal.command("row:activate", f"{path}/activate", {"reason": "resume"})
    await shop.move_clock(101)

    assert (len(suspended), len(await shop.transactions(made.id))) == (1, 2)
