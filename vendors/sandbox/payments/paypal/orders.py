"""Orders of the sandbox's PayPal: the payer approves one, and then the merchant captures its payment."""

from datetime import timedelta
from typing import Any

from vendors.sandbox.payments.paypal.amounts import read_amount
from vendors.sandbox.payments.paypal.records import CaptureAs, Order, Payment, Refund
from vendors.sandbox.payments.paypal.sales import capture_object, capture_refund_object
from vendors.sandbox.payments.paypal.state import Merchant
from vendors.sandbox.payments.paypal.wire import not_found, refusal, time_text

_UNAPPROVED_FOR = timedelta(hours=3)
_PAGE = "/checkoutnow"
_WAITING = frozenset({"CREATED", "PAYER_ACTION_REQUIRED"})
_MAX_CUSTOM_ID = 127


def create(merchant: Merchant, body: dict[str, Any], *, has_key: bool) -> Order:
    if body.get("intent") != "CAPTURE":
        raise refusal(400, "INVALID_PARAMETER_VALUE", "The value of a field is invalid.", at="/intent")
    units = body.get("purchase_units")
    if not isinstance(units, list) or len(units) != 1 or not isinstance(units[0], dict):
        raise refusal(400, "MISSING_REQUIRED_PARAMETER", "A required field is missing.", at="/purchase_units")
    amount = read_amount(units[0].get("amount"), "/purchase_units/0/amount")
    if len(units[0].get("custom_id", "")) > _MAX_CUSTOM_ID:
        at = "/purchase_units/0/custom_id"
        raise refusal(400, "INVALID_STRING_LENGTH", "The value of a field is too long.", at=at)
    source = body.get("payment_source", {}).get("paypal")
    if source is not None and not has_key:
        raise refusal(400, "PAYPAL_REQUEST_ID_REQUIRED", "A PayPal-Request-Id is required.")
    context = body.get("application_context", {}) if source is None else source.get("experience_context", {})
    status = "CREATED" if source is None else "PAYER_ACTION_REQUIRED"
    order = Order(units[0], amount, merchant.now, context, source is not None, status)
    merchant.orders[order.id] = order
    return order


def order_of(merchant: Merchant, order_id: str) -> Order:
    order = merchant.orders.get(order_id)
    if order is None:
        raise not_found()
    if order.status in _WAITING and merchant.now - order.created_at > _UNAPPROVED_FOR:
        raise not_found()
    return order


def approve(merchant: Merchant, order: Order) -> None:
    if order.status in _WAITING:
        order.status = "APPROVED"
        resource = to_object(merchant, order)
        merchant.emit("CHECKOUT.ORDER.APPROVED", "checkout-order", resource, at=merchant.now)


def capture(merchant: Merchant, order: Order) -> None:
    if order.status == "COMPLETED":
        raise refusal(422, "ORDER_ALREADY_CAPTURED", "Order already captured.")
    if order.status != "APPROVED":
        raise refusal(422, "ORDER_NOT_APPROVED", "Payer has not yet approved the Order for payment.")
    if order.capture_as == "instrument_declined":
        order.status, order.capture_as = "CREATED", "completed"
        link = merchant.link("redirect", f"{_PAGE}?token={order.id}")
        raise refusal(422, "INSTRUMENT_DECLINED", "The instrument presented was declined.", links=[link])
    order.status = "COMPLETED"
    order.capture = Payment(order.amount, merchant.now, order.custom_id, order_id=order.id)
    merchant.payments[order.capture.id] = order.capture
    set_capture_state(merchant, order.capture, order.capture_as)
    resource = to_object(merchant, order)
    merchant.emit("CHECKOUT.ORDER.COMPLETED", "checkout-order", resource, at=merchant.now)


def set_capture_state(merchant: Merchant, payment: Payment, capture_as: CaptureAs) -> None:
    """Give a capture its state, at first or after it was pending."""
    payment.status, payment.reason = capture_as.upper(), ""
    event = {"completed": "COMPLETED", "pending": "PENDING"}.get(capture_as, "DENIED")
    if capture_as == "pending":
        payment.reason = "PENDING_REVIEW"
    resource = capture_object(merchant, payment)
    merchant.emit(f"PAYMENT.CAPTURE.{event}", "capture", resource, at=merchant.now)


def to_object(merchant: Merchant, order: Order) -> dict[str, Any]:
    unit = {"reference_id": "default", **order.unit}
    if order.capture is not None:
        refunds = [refund for refund in merchant.refunds.values() if refund.payment is order.capture]
        unit["payments"] = _payments(merchant, order.capture, refunds)
    payer = {"name": {"given_name": "Mei", "surname": "Lin"}, "payer_id": "2J6QB8YJQSJRJ"}
    return {
        "id": order.id,
        "intent": "CAPTURE",
        "status": order.status,
        "purchase_units": [unit],
        **({} if order.status in _WAITING else {"payer": payer}),
        "create_time": time_text(order.created_at),
        "links": _links(merchant, order),
    }


def _payments(merchant: Merchant, payment: Payment, refunds: list[Refund]) -> dict[str, Any]:
    return {
        "captures": [capture_object(merchant, payment, in_order=True)],
        **({"refunds": [capture_refund_object(merchant, refund) for refund in refunds]} if refunds else {}),
    }


def _links(merchant: Merchant, order: Order) -> list[dict[str, str]]:
    path = f"/v2/checkout/orders/{order.id}"
    links = [merchant.link("self", path)]
    if order.status in _WAITING:
        relation = "payer-action" if order.source else "approve"
        links.append(merchant.link(relation, f"{_PAGE}?token={order.id}"))
        links.append(merchant.link("update", path, "PATCH"))
    if order.status in {"CREATED", "APPROVED"}:
        links.append(merchant.link("capture", f"{path}/capture", "POST"))
    return links
