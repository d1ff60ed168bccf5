"""What PayPal's events say about the objects that they belong to: orders and subscriptions, and their payments."""

from urllib.parse import urlsplit

from pydantic import Field

from vendors.payments.paypal.fields import Links, PayPalObject, linked


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
    links: Links = Field(default_factory=list)

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
            urlsplit(linked(self.links, "up", "sale")).path.rpartition("/")[2],
            *(transaction.seller_transaction_id for transaction in self.disputed_transactions),
        )
        return [name for name in named if name]
