"""PayPal's refunds: of the captures of orders, and of sales, which are the payments of subscriptions."""

from urllib.parse import urlsplit

from pydantic import Field

from streams.wire.model import Moment
from vendors.payments.paypal.fields import Amount, Links, PayPalObject, linked

CAPTURES = "/v2/payments/captures"


class Refund(PayPalObject):
    """A refund, of a capture or of a sale."""

    id: str
    status: str
    """`COMPLETED`, `PENDING`, `FAILED` or `CANCELLED`."""
    amount: Amount | None = None
    """The amount that the payer gets. An answer to the call that made it may leave it out. That of a sale may be
    negative."""
    create_time: Moment | None = None
    update_time: Moment | None = None
    sale_id: str = ""
    """The sale that it refunds. Empty for the refund of a capture."""
    links: Links = Field(default_factory=list)

    @property
    def capture_id(self) -> str:
        """The capture that it refunds. Empty for the refund of a sale."""
        path, _, capture_id = urlsplit(linked(self.links, "up")).path.rpartition("/")
        return capture_id if path.endswith(CAPTURES) else ""


class SaleRefund(PayPalObject):
    """A refund of a sale, as PayPal sends it."""

    id: str
    state: str
    """As `status` of `Refund`, in lower case."""
    amount: Amount | None = None
    create_time: Moment | None = None
    update_time: Moment | None = None
    sale_id: str = ""

    @property
    def refund(self) -> Refund:
        return Refund(
            id=self.id,
            status=self.state.upper(),
            amount=self.amount,
            create_time=self.create_time,
            update_time=self.update_time,
            sale_id=self.sale_id,
        )
