"""PayPal's orders: one payment each, which the payer approves and we capture."""

from typing import Any

from pydantic import Field

from streams.wire.model import Moment
from streams.wire.money import Money
from vendors.payments.paypal import PayPal, path_of
from vendors.payments.paypal_fields import Amount, Link, PayPalObject, amount_body, linked
from vendors.payments.paypal_refunds import Refund

_ORDERS = "/v2/checkout/orders"
_CAPTURES = "/v2/payments/captures"
_UNAPPROVED = frozenset({"CREATED", "SAVED", "PAYER_ACTION_REQUIRED"})


class _Reason(PayPalObject):
    reason: str = ""


class _Related(PayPalObject):
    order_id: str = ""


class _Supplementary(PayPalObject):
    related_ids: _Related = _Related()


class Capture(PayPalObject):
    """The payment of an order."""

    id: str
    status: str
    """`COMPLETED`, `DECLINED`, `PARTIALLY_REFUNDED`, `PENDING`, `REFUNDED` or `FAILED`."""
    amount: Amount | None = None
    custom_id: str = ""
    create_time: Moment | None = None
    status_details: _Reason = _Reason()
    """Why it is pending or declined."""
    supplementary_data: _Supplementary = _Supplementary()

    @property
    def order_id(self) -> str:
        """The order that it pays, if PayPal says so."""
        return self.supplementary_data.related_ids.order_id


class _Payments(PayPalObject):
    captures: list[Capture] = Field(default_factory=list)
    refunds: list[Refund] = Field(default_factory=list)


class _PurchaseUnit(PayPalObject):
    custom_id: str = ""
    amount: Amount | None = None
    payments: _Payments = _Payments()


class Order(PayPalObject):
    id: str
    status: str
    """`CREATED`, `SAVED`, `APPROVED`, `VOIDED`, `COMPLETED` or `PAYER_ACTION_REQUIRED`. The capture of a completed
    order may be pending or declined."""
    purchase_units: list[_PurchaseUnit] = Field(default_factory=list)
    links: list[Link] = Field(default_factory=list)

    @property
    def approve_url(self) -> str:
        """Where the payer approves the order. Empty once it is approved."""
        return linked(self.links, "approve", "payer-action") if self.status in _UNAPPROVED else ""

    @property
    def amount(self) -> Money | None:
        """The price. The answer to a capture may leave it out."""
        return next((unit.amount for unit in self.purchase_units), None)

    @property
    def custom_id(self) -> str:
        return next((unit.custom_id for unit in self.purchase_units), "")

    @property
    def captures(self) -> list[Capture]:
        return [capture for unit in self.purchase_units for capture in unit.payments.captures]

    @property
    def refunds(self) -> list[Refund]:
        return [refund for unit in self.purchase_units for refund in unit.payments.refunds]


async def create_order(
    paypal: PayPal,
    key: str,
    *,
    amount: Money,
    custom_id: str,
    description: str = "",
    return_url: str,
    cancel_url: str,
    brand_name: str = "",
    locale: str = "",
) -> Order:
    """Create an order of `amount`, once for each `key`, which PayPal remembers for six hours.

    `custom_id` is at most 127 printable ASCII characters, `description` and `brand_name` 127 characters.
    """
    unit: dict[str, Any] = {"custom_id": custom_id, "amount": amount_body(amount)}
    context = {
        "return_url": return_url,
        "cancel_url": cancel_url,
        "shipping_preference": "NO_SHIPPING",
        "user_action": "PAY_NOW",
    }
    if description:
        unit["description"] = description
    if brand_name:
        context["brand_name"] = brand_name
    if locale:
        context["locale"] = locale
    body = {"intent": "CAPTURE", "purchase_units": [unit], "application_context": context}
    return await paypal.post(key, _ORDERS, body, Order)


async def get_order(paypal: PayPal, order_id: str) -> Order:
    """Read an order. `PayPalRefused.not_found`: it does not exist, or has expired unapproved."""
    return await paypal.get(path_of(_ORDERS, order_id), Order)


async def capture_order(paypal: PayPal, key: str, order_id: str) -> Order:
    """Take the payment of an approved order.

    Issues: `ORDER_NOT_APPROVED`; `ORDER_ALREADY_CAPTURED` (read it: it has succeeded); `INSTRUMENT_DECLINED` and
    `PAYER_ACTION_REQUIRED` (the payer has to approve again).
    """
    return await paypal.post(key, path_of(_ORDERS, order_id, "/capture"), {}, Order)


async def get_capture(paypal: PayPal, capture_id: str) -> Capture:
    return await paypal.get(path_of(_CAPTURES, capture_id), Capture)
