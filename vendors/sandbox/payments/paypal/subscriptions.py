"""Subscriptions of the sandbox's PayPal: their approval, their payments when the clock reaches them, their end."""

from datetime import datetime, timedelta
from typing import Any

from streams.wire.codec import from_rfc3339
from streams.wire.money import Money
from vendors.sandbox.payments.paypal.amounts import written
from vendors.sandbox.payments.paypal.billing_dates import billed_after, billed_on
from vendors.sandbox.payments.paypal.plans import plan_of
from vendors.sandbox.payments.paypal.records import Payment, Subscription
from vendors.sandbox.payments.paypal.sales import sale_object, transaction_object
from vendors.sandbox.payments.paypal.state import Merchant
from vendors.sandbox.payments.paypal.subscription_objects import APPROVAL, cycle_of, price_of, to_object
from vendors.sandbox.payments.paypal.wire import not_found, refusal, time_text

_UNAPPROVED_FOR = timedelta(days=3)
_RETRY_AFTER, _RETRIES = timedelta(days=5), 2
_MAX_CUSTOM_ID = 127
_MAX_REASON = 128
_MAX_RENEWALS = 1000
"""The maximum for one move of the clock."""


def create(merchant: Merchant, body: dict[str, Any]) -> Subscription:
    plan = plan_of(merchant, body.get("plan_id"))
    if plan["status"] != "ACTIVE":
        raise refusal(422, "PLAN_STATUS_INVALID", "Invalid plan status for subscription creation.")
    quantity = body.get("quantity", "1")
    if "quantity" in body and not plan["quantity_supported"]:
        raise refusal(422, "SUBSCRIPTION_CANNOT_HAVE_QUANTITY", "The plan does not support quantity.")
    context = body.get("application_context")
    if not isinstance(context, dict) or not {"return_url", "cancel_url"} <= context.keys():
        at = "/application_context/return_url"
        raise refusal(400, "MISSING_REQUIRED_PARAMETER", "A required field is missing.", at=at)
    custom_id = body.get("custom_id", "")
    if not custom_id.isascii() or len(custom_id) > _MAX_CUSTOM_ID:
        raise refusal(400, "INVALID_STRING_LENGTH", "The value of a field is too long.", at="/custom_id")
    start_at = from_rfc3339(body["start_time"]) if "start_time" in body else None
    made = Subscription(plan, merchant.now, custom_id, context, int(quantity), start_at)
    made.status_at = made.created_at
    merchant.subscriptions[made.id] = made
    merchant.emit("BILLING.SUBSCRIPTION.CREATED", "subscription", to_object(merchant, made), at=made.created_at)
    return made


def subscription_of(merchant: Merchant, subscription_id: str) -> Subscription:
    found = merchant.subscriptions.get(subscription_id)
    if found is None:
        raise not_found()
    if found.status == "APPROVAL_PENDING" and merchant.now - found.created_at > _UNAPPROVED_FOR:
        raise not_found()
    return found


def approve(merchant: Merchant, subscription: Subscription, *, later: bool = False) -> None:
    """Let the payer approve a subscription, or its revision. `later`: it is not active at once."""
    if subscription.revised is not None:
        subscription.plan, subscription.revised = subscription.revised, None
        subscription.updated_at = merchant.now
        _emit_change(merchant, subscription, "UPDATED", at=merchant.now)
    elif subscription.status == "APPROVAL_PENDING":
        _set_status(subscription, "APPROVED", at=merchant.now)
        if not later and (subscription.start_at is None or subscription.start_at <= merchant.now):
            begin(merchant, subscription)


def begin(merchant: Merchant, subscription: Subscription) -> None:
    """Activate an approved subscription and take its first payment.

    If it is declined, the payer has to approve again.
    """
    now = max(merchant.now, subscription.start_at or merchant.now)
    subscription.next_at = now
    _set_status(subscription, "ACTIVE", at=now)
    _begin_period(merchant, subscription)
    if subscription.failed:  # Its first payment has been declined.
        subscription.next_at = subscription.retry_at = None
        subscription.failed = subscription.retries = 0
        _set_status(subscription, "APPROVAL_PENDING", at=now)
        return
    _emit_change(merchant, subscription, "ACTIVATED", at=now)


def cancel(merchant: Merchant, subscription: Subscription, body: dict[str, Any]) -> None:
    _require_reason(body)
    if subscription.status not in {"ACTIVE", "SUSPENDED"}:
        raise _invalid_status("cancel", "active or suspended")
    _end(merchant, subscription, "CANCELLED", at=merchant.now)


def _end(merchant: Merchant, subscription: Subscription, status: str, *, at: datetime) -> None:
    _set_status(subscription, status, at=at)
    subscription.next_at = subscription.retry_at = None
    _emit_change(merchant, subscription, status, at=at)


def suspend(merchant: Merchant, subscription: Subscription, body: dict[str, Any]) -> None:
    _require_reason(body)
    if subscription.status != "ACTIVE":
        raise _invalid_status("suspend", "active")
    _set_status(subscription, "SUSPENDED", at=merchant.now)
    _emit_change(merchant, subscription, "SUSPENDED", at=merchant.now)


def activate(merchant: Merchant, subscription: Subscription, body: dict[str, Any]) -> None:
    """Activate a suspended subscription.

    Payments that were due meanwhile are left out. `next_billing_time` becomes 10:00 UTC of the current day, and the
    payment is taken then or at once ("Activating a subscription after capturing outstanding balance will charge
    the customer again", https://www.paypal-community.com/t5/REST-APIs/m-p/3131544).
    """
    if subscription.status != "SUSPENDED":
        raise _invalid_status("activate", "suspended")
    subscription.failed = 0
    subscription.retry_at, subscription.retries = None, 0
    if subscription.next_at is not None and subscription.next_at <= merchant.now:
        subscription.next_at = billed_on(merchant.now)
    _set_status(subscription, "ACTIVE", at=merchant.now)
    _emit_change(merchant, subscription, "RE-ACTIVATED", at=merchant.now)
    advance(merchant, subscription)


def revise(merchant: Merchant, subscription: Subscription, body: dict[str, Any]) -> dict[str, Any]:
    """Begin a change of plan. The payer has to approve it, and the next payment is the first of the new plan."""
    plan = plan_of(merchant, body.get("plan_id", subscription.plan["id"]))
    if plan["product_id"] != subscription.plan["product_id"]:
        raise refusal(422, "PLAN_PRODUCT_NOT_COMPATIBLE", "The plan belongs to another product.")
    if subscription.status not in {"ACTIVE", "SUSPENDED"}:
        raise _invalid_status("revise", "active or suspended")
    subscription.revised = plan
    path = f"/v1/billing/subscriptions/{subscription.id}"
    approval = merchant.link("approve", f"{APPROVAL}/update?ba_token={subscription.token}")
    return {
        "plan_id": plan["id"],
        "plan_overridden": False,
        "links": [approval, merchant.link("edit", path, "PATCH"), merchant.link("self", path)],
    }


def advance(merchant: Merchant, subscription: Subscription) -> None:
    """Take the payments that are due by the merchant's clock."""
    if subscription.status == "APPROVED" and subscription.start_at and subscription.start_at <= merchant.now:
        begin(merchant, subscription)
    for _ in range(_MAX_RENEWALS):
        due_at = subscription.due_at
        if subscription.status != "ACTIVE" or due_at is None or due_at > merchant.now:
            return
        _begin_period(merchant, subscription)


def transactions(subscription: Subscription, merchant: Merchant, start: str, end_: str) -> list[dict[str, Any]]:
    try:
        begin_at, end_at = from_rfc3339(start), from_rfc3339(end_)
    except ValueError:
        raise refusal(400, "INVALID_PARAMETER_SYNTAX", "start_time and end_time are times.") from None
    sales = (sale for sale in merchant.payments.values() if sale.subscription_id == subscription.id)
    found = [sale for sale in sales if begin_at <= sale.at <= end_at + timedelta(seconds=1)]
    return [transaction_object(sale) for sale in reversed(found)]


def _begin_period(merchant: Merchant, subscription: Subscription) -> None:
    """Begin the next period, and take its payment."""
    at = subscription.due_at
    cycle = cycle_of(subscription.plan, subscription.cycles)
    assert at is not None, "a payment is due"
    assert subscription.next_at is not None, "a period is due"
    if cycle is None:
        _end(merchant, subscription, "EXPIRED", at=at)
        return
    price = price_of(subscription, subscription.cycles)
    if price is not None and subscription.declines:
        _decline_payment(merchant, subscription, price, cycle, at=at)
        return
    _end_cycle(subscription, cycle)
    subscription.cycles += 1
    subscription.failed = 0
    if price is not None:
        price += Money(subscription.outstanding, price.currency)
        subscription.outstanding = 0
        sale = Payment(
            price, at, subscription.custom_id, subscription_id=subscription.id, plan_id=subscription.plan["id"]
        )
        merchant.payments[sale.id] = sale
        if subscription.pends:
            subscription.pends -= 1
            sale.status, sale.reason = "PENDING", "ECHECK"
            _emit_sale(merchant, subscription, sale, at=at)
        else:
            _take(merchant, subscription, sale, at=at)


def _take(merchant: Merchant, subscription: Subscription, sale: Payment, *, at: datetime) -> None:
    sale.status, sale.reason = "COMPLETED", ""
    subscription.last, subscription.updated_at = sale, at
    _emit_sale(merchant, subscription, sale, at=at)


def _emit_sale(merchant: Merchant, subscription: Subscription, sale: Payment, *, at: datetime) -> None:
    """Send `PAYMENT.SALE.COMPLETED`, `DENIED` or `PENDING` (developer.paypal.com/api/rest/webhooks/event-names)."""
    what = "DENIED" if sale.status == "DECLINED" else sale.status
    resource = {**sale_object(merchant, sale), "custom": subscription.custom_id}
    merchant.emit(f"PAYMENT.SALE.{what}", "sale", resource, at=at)


def settle(merchant: Merchant, sale: Payment, *, completed: bool) -> None:
    """Complete a pending sale, or let it fail."""
    subscription = merchant.subscriptions[sale.subscription_id]
    sale.changed_at = merchant.now
    if completed:
        _take(merchant, subscription, sale, at=merchant.now)
        return
    sale.status, sale.reason = "DECLINED", ""
    _emit_sale(merchant, subscription, sale, at=merchant.now)


def _decline_payment(
    merchant: Merchant, subscription: Subscription, price: Money, cycle: dict[str, Any], *, at: datetime
) -> None:
    """Let a payment fail. It is repeated after 5 days, twice at most, and then added to the next one.

    See "Payment failures and recovering balances",
    https://developer.paypal.com/docs/subscriptions/customize/payment-failure-retry/.
    """
    subscription.declines -= 1
    subscription.failed += subscription.retries == 0
    subscription.retry_at = at + _RETRY_AFTER if subscription.retries < _RETRIES else None
    subscription.retries += 1
    retried = {} if subscription.retry_at is None else {"next_payment_retry_time": time_text(subscription.retry_at)}
    subscription.last_failure = {
        "amount": written(price), "time": time_text(at), "reason_code": "PAYMENT_DENIED", **retried,
    }  # fmt: skip
    resource = to_object(merchant, subscription, fields={"last_failed_payment"})
    merchant.emit("BILLING.SUBSCRIPTION.PAYMENT.FAILED", "subscription", resource, at=at)
    if subscription.retry_at is None and subscription.cycles:
        subscription.outstanding += price.amount
        _end_cycle(subscription, cycle)
    threshold = subscription.plan["payment_preferences"].get("payment_failure_threshold", 0)
    if threshold and subscription.failed >= threshold and subscription.retry_at is None:
        _set_status(subscription, "SUSPENDED", at=at)
        _emit_change(merchant, subscription, "SUSPENDED", at=at)


def _end_cycle(subscription: Subscription, cycle: dict[str, Any]) -> None:
    """Let the next payment be that of the next period."""
    assert subscription.next_at is not None, "a period is due"
    subscription.next_at = billed_after(subscription.next_at, cycle["frequency"])
    subscription.retry_at, subscription.retries = None, 0


def _set_status(subscription: Subscription, status: str, *, at: datetime) -> None:
    subscription.status = status
    subscription.status_at = subscription.updated_at = at


def _emit_change(merchant: Merchant, subscription: Subscription, what: str, *, at: datetime) -> None:
    merchant.emit(f"BILLING.SUBSCRIPTION.{what}", "subscription", to_object(merchant, subscription), at=at)


def _require_reason(body: dict[str, Any]) -> None:
    reason = body.get("reason")
    if not isinstance(reason, str) or not 1 <= len(reason) <= _MAX_REASON:
        raise refusal(400, "MISSING_REQUIRED_PARAMETER", "A required field is missing.", at="/reason")


def _invalid_status(action: str, needed: str) -> Exception:
    description = f"Invalid subscription status for {action} action; subscription status should be {needed}."
    return refusal(422, "SUBSCRIPTION_STATUS_INVALID", description)
