"""Subscriptions of the sandbox's PayPal as its calls and events show them, and the prices of their plans."""

from collections.abc import Collection
from typing import Any

from streams.wire.money import Money
from vendors.sandbox.payments.paypal.amounts import read_amount, written
from vendors.sandbox.payments.paypal.records import Payment, Subscription
from vendors.sandbox.payments.paypal.state import Merchant
from vendors.sandbox.payments.paypal.wire import time_text

APPROVAL = "/webapps/billing/subscriptions"
"""The path of the page on which a payer approves a subscription."""


def to_object(merchant: Merchant, subscription: Subscription, *, fields: Collection[str] = ()) -> dict[str, Any]:
    """Return a subscription. `fields` are those that PayPal only returns if a call asks for them."""
    path = f"/v1/billing/subscriptions/{subscription.id}"
    links = [merchant.link("edit", path, "PATCH"), merchant.link("self", path)]
    if subscription.status == "APPROVAL_PENDING":
        links.insert(0, merchant.link("approve", f"{APPROVAL}?ba_token={subscription.token}"))
    return {
        "id": subscription.id,
        "status": subscription.status,
        "status_update_time": time_text(subscription.status_at or subscription.created_at),
        "plan_id": subscription.plan["id"],
        "plan_overridden": False,
        "start_time": time_text(subscription.start_at or subscription.created_at),
        "quantity": str(subscription.quantity),
        **({"custom_id": subscription.custom_id} if subscription.custom_id else {}),
        "subscriber": {"email_address": "mei@example.test", "payer_id": "2J6QB8YJQSJRJ"},
        "create_time": time_text(subscription.created_at),
        "update_time": time_text(subscription.updated_at or subscription.created_at),
        **(
            {}
            if subscription.status == "APPROVAL_PENDING"
            else {"billing_info": _billing_info(subscription, fields)}
        ),
        **({"plan": subscription.plan} if "plan" in fields else {}),
        "links": links,
    }


def _billing_info(subscription: Subscription, fields: Collection[str]) -> dict[str, Any]:
    executions = []
    begun = subscription.cycles
    for cycle in _cycles(subscription.plan):
        total = cycle["total_cycles"]
        done = min(begun, total) if total else begun
        begun -= done
        executions.append(
            {
                "tenure_type": cycle["tenure_type"],
                "sequence": cycle["sequence"],
                "cycles_completed": done,
                "cycles_remaining": total - done if total else 0,
                "total_cycles": total,
            }
        )
    price = price_of(subscription, subscription.cycles) or Money(0, "USD")
    failure = subscription.last_failure if "last_failed_payment" in fields else None
    return {
        "outstanding_balance": written(Money(subscription.outstanding, price.currency)),
        "cycle_executions": executions,
        **({"last_payment": _last_payment(subscription.last)} if subscription.last else {}),
        **({"next_billing_time": time_text(subscription.next_at)} if subscription.next_at else {}),
        "failed_payments_count": subscription.failed,
        **({} if failure is None else {"last_failed_payment": failure}),
    }


def _last_payment(payment: Payment) -> dict[str, Any]:
    return {"amount": written(payment.amount), "time": time_text(payment.at)}


def _cycles(plan: dict[str, Any]) -> list[dict[str, Any]]:
    return sorted(plan["billing_cycles"], key=lambda cycle: int(cycle["sequence"]))


def cycle_of(plan: dict[str, Any], number: int) -> dict[str, Any] | None:
    """Return the billing cycle of a period, counted from 0. `None`: there is none after the end of the plan."""
    for cycle in _cycles(plan):
        total = cycle["total_cycles"]
        if total == 0 or number < total:
            return cycle
        number -= total
    return None


def price_of(subscription: Subscription, number: int) -> Money | None:
    """Return the payment of a period with its taxes. `None`: it is free."""
    cycle = cycle_of(subscription.plan, number) or _cycles(subscription.plan)[-1]
    price = cycle.get("pricing_scheme", {}).get("fixed_price")
    if price is None:
        return None
    single = read_amount(price, "/fixed_price")
    net = Money(single.amount * subscription.quantity, single.currency)
    taxes = subscription.plan.get("taxes")
    if taxes is None or taxes.get("inclusive", True):
        return net
    return net + net.part(round(float(taxes["percentage"]) * 10_000), 1_000_000)
