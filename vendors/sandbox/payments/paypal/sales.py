"""Payments and refunds of the sandbox's PayPal: captures of orders, and sales, which pay for subscriptions."""

from datetime import timedelta
from typing import Any

from streams.wire.errors import InvalidParameter
from streams.wire.money import Money
from vendors.sandbox.payments.paypal.amounts import (
    fee_of,
    read_amount,
    value_of,
    written,
    written_total,
)
from vendors.sandbox.payments.paypal.records import Payment, Refund, RefundStatus
from vendors.sandbox.payments.paypal.state import Merchant
from vendors.sandbox.payments.paypal.wire import not_found, refusal, time_text

_REFUND_FOR = timedelta(days=180)


def capture_object(merchant: Merchant, capture: Payment, *, in_order: bool = False) -> dict[str, Any]:
    """Return a capture. It names its order, except inside of the order."""
    related = {"supplementary_data": {"related_ids": {"order_id": capture.order_id}}}
    fee = fee_of(capture.amount)
    path = f"/v2/payments/captures/{capture.id}"
    return {
        "id": capture.id,
        "status": capture.status,
        **({"status_details": {"reason": capture.reason}} if capture.reason else {}),
        "amount": written(capture.amount),
        "final_capture": True,
        "seller_protection": {"status": "NOT_ELIGIBLE"},
        "seller_receivable_breakdown": {
            "gross_amount": written(capture.amount),
            "paypal_fee": written(fee),
            "net_amount": written(capture.amount - fee),
        },
        "custom_id": capture.custom_id,
        **({} if in_order else related),
        "create_time": time_text(capture.at),
        "update_time": time_text(capture.changed_at or capture.at),
        "links": [
            merchant.link("self", path),
            merchant.link("refund", f"{path}/refund", "POST"),
            merchant.link("up", f"/v2/checkout/orders/{capture.order_id}"),
        ],
    }


def capture_refund_object(merchant: Merchant, refund: Refund) -> dict[str, Any]:
    return {
        "id": refund.id,
        "status": refund.status,
        "amount": written(refund.amount),
        "custom_id": refund.payment.custom_id,
        "seller_payable_breakdown": {
            "gross_amount": written(refund.amount),
            "net_amount": written(refund.amount),
            "total_refunded_amount": written(Money(refund.payment.refunded, refund.amount.currency)),
        },
        "create_time": time_text(refund.at),
        "update_time": time_text(refund.at),
        "links": [
            merchant.link("self", f"/v2/payments/refunds/{refund.id}"),
            merchant.link("up", f"/v2/payments/captures/{refund.payment.id}"),
        ],
    }


def sale_object(merchant: Merchant, sale: Payment) -> dict[str, Any]:
    path = f"/v1/payments/sale/{sale.id}"
    state = "denied" if sale.status == "DECLINED" else sale.status.lower()
    return {
        "id": sale.id,
        "state": state,
        "amount": written_total(sale.amount),
        "payment_mode": "ECHECK" if sale.reason == "ECHECK" else "INSTANT_TRANSFER",
        **({"reason_code": sale.reason} if sale.reason else {}),
        "protection_eligibility": "INELIGIBLE",
        "transaction_fee": {"currency": sale.amount.currency, "value": value_of(fee_of(sale.amount))},
        "parent_payment": f"PAYID-{sale.id}",
        "billing_agreement_id": sale.subscription_id,
        "create_time": time_text(sale.at),
        "update_time": time_text(sale.changed_at or sale.at),
        "links": [merchant.link("self", path), merchant.link("refund", f"{path}/refund", "POST")],
    }


def sale_refund_object(merchant: Merchant, refund: Refund) -> dict[str, Any]:
    return {
        "id": refund.id,
        "state": refund.status.lower(),
        "amount": written_total(refund.amount),
        "sale_id": refund.payment.id,
        "parent_payment": f"PAYID-{refund.payment.id}",
        "create_time": time_text(refund.at),
        "update_time": time_text(refund.at),
        "links": [
            merchant.link("self", f"/v1/payments/refund/{refund.id}"),
            merchant.link("sale", f"/v1/payments/sale/{refund.payment.id}"),
        ],
    }


def transaction_object(sale: Payment) -> dict[str, Any]:
    fee = fee_of(sale.amount)
    return {
        "id": sale.id,
        "status": sale.status,
        "amount_with_breakdown": {
            "gross_amount": written(sale.amount),
            "fee_amount": written(fee),
            "net_amount": written(sale.amount - fee),
        },
        "payer_name": {"given_name": "Mei", "surname": "Lin"},
        "payer_email": "mei@example.test",
        "time": time_text(sale.at),
    }


def payment_of(merchant: Merchant, payment_id: str, *, sale: bool) -> Payment:
    payment = merchant.payments.get(payment_id)
    if payment is None or bool(payment.order_id) is sale:
        raise not_found()
    return payment


def refund_of(merchant: Merchant, refund_id: str, *, sale: bool) -> Refund:
    refund = merchant.refunds.get(refund_id)
    if refund is None or bool(refund.payment.order_id) is sale:
        raise not_found()
    return refund


def refund_capture(merchant: Merchant, capture_id: str, body: dict[str, Any]) -> Refund:
    capture = payment_of(merchant, capture_id, sale=False)
    if capture.status == "REFUNDED":
        raise refusal(422, "CAPTURE_FULLY_REFUNDED", "The capture has already been fully refunded.")
    if capture.status not in {"COMPLETED", "PARTIALLY_REFUNDED"}:
        raise refusal(422, "REFUND_NOT_ALLOWED", "Refund is not allowed for this transaction.")
    if merchant.now - capture.at > _REFUND_FOR:
        raise refusal(422, "REFUND_TIME_LIMIT_EXCEEDED", "You are over the time limit to perform a refund.")
    amount = read_amount(body["amount"], "/amount") if "amount" in body else capture.left
    if amount.currency != capture.amount.currency:
        raise refusal(422, "REFUND_CAPTURE_CURRENCY_MISMATCH", "Refund must be in the currency of the capture.")
    if capture.left < amount:
        raise refusal(422, "REFUND_AMOUNT_EXCEEDED", "The refund amount must be at most the capture's.")
    return make_refund(merchant, capture, amount, status=merchant.refunds_as, by_call=True)


def refund_sale(merchant: Merchant, sale_id: str, body: dict[str, Any]) -> Refund:
    sale = payment_of(merchant, sale_id, sale=True)
    if sale.status == "REFUNDED":
        raise _refusal_of_sale(merchant, "TRANSACTION_ALREADY_REFUNDED")
    if sale.status not in {"COMPLETED", "PARTIALLY_REFUNDED"}:
        raise refusal(400, name="TRANSACTION_REFUSED")
    if merchant.now - sale.at > _REFUND_FOR:
        raise refusal(400, name="REFUND_TIME_LIMIT_EXCEEDED")
    amount = sale.left
    if "amount" in body:
        amount = read_amount(body["amount"], "/amount", code="currency", number="total")
    if amount.currency != sale.amount.currency or sale.left < amount:
        raise _refusal_of_sale(merchant, "REFUND_EXCEEDED_TRANSACTION_AMOUNT")
    if merchant.refunds_whole_sales and amount != sale.amount:
        raise _refusal_of_sale(merchant, "TRANSACTION_REFUSED")
    return make_refund(merchant, sale, amount, status=merchant.refunds_as, by_call=True)


def _refusal_of_sale(merchant: Merchant, usual: str) -> Exception:
    """Return the error of a refund of a sale. Names of version 1 have no details, those of version 2 are issues."""
    name = merchant.refund_refusal or usual
    return refusal(400, name=name) if "TRANSACTION" in name else refusal(422, name)


def make_refund(
    merchant: Merchant,
    payment: Payment,
    amount: Money,
    *,
    status: RefundStatus = "COMPLETED",
    is_reversal: bool = False,
    by_call: bool = False,
) -> Refund:
    """Refund a payment, whoever has asked for it."""
    refund = Refund(payment, amount, merchant.now, "PENDING", is_reversal, by_call)
    merchant.refunds[refund.id] = refund
    turn_refund(merchant, refund, status)
    return refund


def turn_refund(merchant: Merchant, refund: Refund, status: RefundStatus) -> None:
    """Give a pending refund its status. The payment is refunded once the refund is completed."""
    if refund.status != "PENDING":
        raise InvalidParameter(f"the refund is {refund.status}")
    refund.status = status
    if status != "COMPLETED":
        return
    refund.payment.refund(refund.amount, at=merchant.now)
    what = "REVERSED" if refund.is_reversal else "REFUNDED"
    if refund.payment.order_id:
        resource = capture_refund_object(merchant, refund)
        merchant.emit(f"PAYMENT.CAPTURE.{what}", "refund", resource, at=merchant.now)
    else:
        merchant.emit(f"PAYMENT.SALE.{what}", "sale", _reported(merchant, refund), at=merchant.now)


def _reported(merchant: Merchant, refund: Refund) -> dict[str, Any]:
    """Return the refund of a sale as PayPal's examples of its webhooks have it.

    The amount is negative, and `resource_type` of the event is `sale`. A reversal names neither the sale nor the
    subscription: only a call for the refund says them.
    """
    value = value_of(refund.amount)
    reported = {
        **sale_refund_object(merchant, refund),
        "amount": {"total": f"-{value}", "currency": refund.amount.currency},
    }
    if not refund.is_reversal:
        return reported
    left = {name: reported[name] for name in ("id", "create_time", "state", "amount")}
    return {**left, "links": [merchant.link("self", f"/v1/payments/refund/{refund.id}")]}


def reverse(merchant: Merchant, payment: Payment, amount: Money) -> Refund:
    """Take a payment or a part of it back from the merchant, as after a chargeback."""
    payment.reason = "CHARGEBACK"
    return make_refund(merchant, payment, amount, is_reversal=True)
