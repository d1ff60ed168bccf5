"""PayPal's orders: one payment each, which the payer approves and we capture."""

from pydantic import Field

from streams.wire.model import Moment
from streams.wire.money import Money
from vendors.payments.paypal.fields import Amount, Links, PayPalObject, linked
from vendors.payments.paypal.refunds import Refund

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
    update_time: Moment | None = None
    status_details: _Reason = _Reason()
    """Why it is pending or declined. `CHARGEBACK`: a bank has taken it, or a part of it, from the merchant."""
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
    links: Links = Field(default_factory=list)

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
