"""The books of a merchant of the sandbox's PayPal: everything that was paid, refunded, disputed and paid out."""

from typing import Any

from streams.wire.codec import from_rfc3339, rfc3339
from vendors.sandbox.payments.paypal.records import Dispute, Subscription
from vendors.sandbox.payments.paypal.state import Merchant


def books(merchant: Merchant) -> dict[str, Any]:
    """Return all payments, refunds, disputes, payouts and subscriptions of a merchant. Amounts are minor units.

    A payment with an order is a capture. Any other is a sale of a subscription.
    """
    payments = [
        {
            "id": payment.id,
            "order_id": payment.order_id,
            "subscription_id": payment.subscription_id,
            "plan_id": payment.plan_id,
            "status": payment.status,
            "amount": payment.amount.amount,
            "refunded": payment.refunded,
            "at": rfc3339(payment.at),
        }
        for payment in merchant.payments.values()
    ]
    refunds = [
        {
            "id": refund.id,
            "payment_id": refund.payment.id,
            "amount": refund.amount.amount,
            "status": refund.status,
            "is_reversal": refund.is_reversal,
            "by_call": refund.by_call,
        }
        for refund in merchant.refunds.values()
    ]
    payouts = [
        {"id": payout.id, "sender_batch_id": payout.header["sender_batch_id"], "status": payout.status}
        for payout in merchant.payouts.values()
    ]
    return {
        "payments": payments,
        "refunds": refunds,
        "disputes": [_dispute(dispute) for dispute in merchant.disputes.values()],
        "payouts": payouts,
        "subscriptions": [_subscription(subscription) for subscription in merchant.subscriptions.values()],
    }


def _dispute(dispute: Dispute) -> dict[str, Any]:
    return {
        "id": dispute.id,
        "payment_id": dispute.payment.id,
        "amount": dispute.amount.amount,
        "outcome": dispute.outcome,
        "reversed": 0 if dispute.reversal is None else dispute.reversal.amount.amount,
    }


def _subscription(subscription: Subscription) -> dict[str, Any]:
    failure = subscription.last_failure
    times = {
        "status_at": subscription.status_at,
        "next_at": subscription.next_at,
        "due_at": subscription.due_at,
        "failed_at": None if failure is None else from_rfc3339(failure["time"]),
    }
    return {
        "id": subscription.id,
        "status": subscription.status,
        "plan_id": subscription.plan["id"],
        **{name: None if at is None else rfc3339(at) for name, at in times.items()},
    }
