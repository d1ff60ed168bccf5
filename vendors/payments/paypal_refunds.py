"""PayPal's refunds: of the captures of orders, and of sales, which are the payments of subscriptions."""

from urllib.parse import urlsplit

from pydantic import Field

from streams.wire.model import Moment
from streams.wire.money import Money
from vendors.payments.paypal import PayPal, path_of
from vendors.payments.paypal_fields import Amount, Link, PayPalObject, amount_body, linked, total_body

_CAPTURES = "/v2/payments/captures"
_CAPTURE_REFUNDS = "/v2/payments/refunds"
_SALES = "/v1/payments/sale"
_SALE_REFUNDS = "/v1/payments/refund"


class Refund(PayPalObject):
    """A refund, of a capture or of a sale."""

    id: str
    status: str
    """`COMPLETED`, `PENDING`, `FAILED` or `CANCELLED`."""
    amount: Amount | None = None
    """What the payer gets. An answer to the call that made it may leave it out."""
    create_time: Moment | None = None
    sale_id: str = ""
    """The sale that it refunds. Empty for the refund of a capture."""
    links: list[Link] = Field(default_factory=list)

    @property
    def capture_id(self) -> str:
        """The capture that it refunds. Empty for the refund of a sale."""
        path, _, capture_id = urlsplit(linked(self.links, "up")).path.rpartition("/")
        return capture_id if path.endswith(_CAPTURES) else ""


class _SaleRefund(PayPalObject):
    id: str
    state: str
    """As `status` of `Refund`, in lower case."""
    amount: Amount | None = None
    create_time: Moment | None = None
    sale_id: str = ""

    @property
    def refund(self) -> Refund:
        return Refund(
            id=self.id,
            status=self.state.upper(),
            amount=self.amount,
            create_time=self.create_time,
            sale_id=self.sale_id,
        )


async def refund_capture(paypal: PayPal, key: str, capture_id: str, amount: Money) -> Refund:
    """Refund a part of a capture, or all of it, once for each `key`, which PayPal remembers for 45 days.

    Issues: `CAPTURE_FULLY_REFUNDED`, `REFUND_AMOUNT_EXCEEDED`, `REFUND_TIME_LIMIT_EXCEEDED` (180 days).
    """
    path = path_of(_CAPTURES, capture_id, "/refund")
    return await paypal.post(key, path, {"amount": amount_body(amount)}, Refund)


async def get_capture_refund(paypal: PayPal, refund_id: str) -> Refund:
    """Read the refund of a capture."""
    return await paypal.get(path_of(_CAPTURE_REFUNDS, refund_id), Refund)


async def refund_sale(paypal: PayPal, key: str, sale_id: str, amount: Money) -> Refund:
    """Refund a part of a sale, or all of it, once for each `key`, which PayPal remembers for 45 days."""
    path = path_of(_SALES, sale_id, "/refund")
    return (await paypal.post(key, path, {"amount": total_body(amount)}, _SaleRefund)).refund


async def get_sale_refund(paypal: PayPal, refund_id: str) -> Refund:
    """Read the refund of a sale."""
    return (await paypal.get(path_of(_SALE_REFUNDS, refund_id), _SaleRefund)).refund
