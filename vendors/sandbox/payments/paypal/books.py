"""The books of a merchant of the sandbox's PayPal: everything that was paid, refunded, disputed and paid out."""

from typing import Any

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
        }
        for payment in merchant.payments.values()
    ]
    refunds = [
        {"id": refund.id, "payment_id": refund.payment.id, "amount": refund.amount.amount, "status": refund.status}
        for refund in merchant.refunds.values()
    ]
    payouts = [
        {"id": payout.id, "sender_batch_id": payout.header["sender_batch_id"], "status": payout.status}
        for payout in merchant.payouts.values()
    ]
    subscriptions = [
        {"id": subscription.id, "status": subscription.status} for subscription in merchant.subscriptions.values()
    ]
    disputes = [
        {"id": dispute.id, "payment_id": dispute.payment.id, "outcome": dispute.outcome}
        for dispute in merchant.disputes.values()
    ]
    return {
        "payments": payments,
        "refunds": refunds,
        "disputes": disputes,
        "payouts": payouts,
        "subscriptions": subscriptions,
    }
