"""What PayPal's events say about the objects that they belong to: orders and subscriptions, and their payments."""

from typing import Literal, NamedTuple
from urllib.parse import urlsplit

from pydantic import Field

from vendors.payments.paypal.fields import Link, PayPalObject, linked

PaymentKind = Literal["capture", "capture_refund", "sale", "sale_refund"]
_COLLECTIONS: dict[str, PaymentKind] = {
    "/v2/payments/captures": "capture",
    "/v2/payments/refunds": "capture_refund",
    "/v1/payments/sale": "sale",
    "/v1/payments/refund": "sale_refund",
}


class NamedPayment(NamedTuple):
    """A payment, or a refund of one, which PayPal can be asked for."""

    kind: PaymentKind
    id: str


class _Related(PayPalObject):
    order_id: str = ""
    capture_id: str = ""


class _Supplementary(PayPalObject):
    related_ids: _Related = _Related()


class _Disputed(PayPalObject):
    seller_transaction_id: str = ""


class EventResource(PayPalObject):
    """The resource of an event of any type, with the fields that name other objects.

    Source: the samples of PayPal's webhook events, and the schemas `capture`, `refund`, `sale` and `dispute` of its
    OpenAPI.
    """

    id: str = ""
    billing_agreement_id: str = ""
    """The subscription of a sale."""
    sale_id: str = ""
    """The sale of a refund."""
    supplementary_data: _Supplementary = _Supplementary()
    disputed_transactions: list[_Disputed] = Field(default_factory=list)
    links: list[Link] = Field(default_factory=list)

    @property
    def owner_id(self) -> str:
        """The order or the subscription of a payment. Empty: the resource does not name it."""
        return self.supplementary_data.related_ids.order_id or self.billing_agreement_id

    @property
    def ids(self) -> list[str]:
        """The resource, and what it belongs to: a payment, an order or a subscription."""
        named = (
            self.id,
            self.owner_id,
            self.sale_id,
            self.supplementary_data.related_ids.capture_id,
            _split(linked(self.links, "up", "sale"))[1],
            *(transaction.seller_transaction_id for transaction in self.disputed_transactions),
        )
        return [name for name in named if name]

    @property
    def payment(self) -> NamedPayment | None:
        """The payment or the refund that the resource is, by its link to itself.

        The name of the event does not say it: the resource of `PAYMENT.CAPTURE.REVERSED` is a refund.
        """
        collection, object_id = _split(linked(self.links, "self"))
        kinds = (kind for path, kind in _COLLECTIONS.items() if collection.endswith(path))
        kind = next(kinds, None)
        return NamedPayment(kind, object_id) if kind is not None and object_id else None


def _split(address: str) -> tuple[str, str]:
    """Return the path of a collection, and the id of the object in it to which a link leads."""
    collection, _, object_id = urlsplit(address).path.rpartition("/")
    return collection, object_id
