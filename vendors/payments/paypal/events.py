"""PayPal's events: the bodies of its webhooks, which PayPal also lists."""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple
from urllib.parse import urlsplit

from pydantic import Field, InstanceOf, model_validator

from streams.wire.model import Moment
from vendors.objects import Unreadable, read_each
from vendors.payments.paypal.fields import Links, PayPalObject, linked

Subject = Literal["subscription", "order", "capture", "capture_refund", "sale", "sale_refund", "dispute"]
_COLLECTIONS: dict[str, Subject] = {
    "/v1/billing/subscriptions": "subscription",
    "/v2/checkout/orders": "order",
    "/v2/payments/captures": "capture",
    "/v2/payments/refunds": "capture_refund",
    "/v1/payments/sale": "sale",
    "/v1/payments/refund": "sale_refund",
    "/v1/customer/disputes": "dispute",
}
_SUBJECTS: dict[str, Subject] = {
    "BILLING.SUBSCRIPTION.": "subscription",
    "CHECKOUT.ORDER.": "order",
    "PAYMENT.CAPTURE.REFUNDED": "capture_refund",
    "PAYMENT.CAPTURE.": "capture",
    "PAYMENT.SALE.REFUNDED": "sale_refund",
    "PAYMENT.SALE.": "sale",
}
"""By the beginning of the event's name, the first that fits."""


class Named(NamedTuple):
    """The object that an event is about."""

    subject: Subject
    id: str


class WebhookEvent(PayPalObject):
    """An event, as in the body of a webhook. It may be old: read the object that it names."""

    id: str = Field(min_length=1, max_length=255)
    event_type: str = ""
    create_time: Moment | None = None
    resource_type: str = ""
    resource: Mapping[str, Any] = Field(default_factory=dict)

    def text(self, field: str) -> str:
        """Return a text field of the resource. Empty: it is missing, or no text."""
        value = self.resource.get(field)
        return value if isinstance(value, str) else ""

    @property
    def named(self) -> Named | None:
        """What the event is about. `None`: it is not known here.

        The link of the resource to itself says it: `PAYMENT.CAPTURE.REVERSED` and `PAYMENT.SALE.REVERSED` have a
        refund, although `resource_type` of the latter is `sale`. A dispute has an id of its own. The name of the
        event counts only if there is neither.
        """
        path, _, object_id = urlsplit(self._linked("self")).path.rpartition("/")
        for collection, subject in _COLLECTIONS.items():
            if path.endswith(collection) and object_id:
                return Named(subject, object_id)
        if dispute_id := self.text("dispute_id"):
            return Named("dispute", dispute_id)
        for prefix, subject in _SUBJECTS.items():
            if self.event_type.startswith(prefix) and self.text("id"):
                return Named(subject, self.text("id"))
        subscription_id = self.text("billing_agreement_id")  # Of a sale without an id.
        return Named("subscription", subscription_id) if subscription_id else None

    def _linked(self, relation: str) -> str:
        links = self.resource.get("links")
        for link in links if isinstance(links, list) else []:
            if isinstance(link, Mapping) and link.get("rel") == relation and isinstance(link.get("href"), str):
                return str(link["href"])
        return ""

    @property
    def is_reversal(self) -> bool:
        """Whether a refund was not made by the merchant. The refund itself does not say so."""
        return self.event_type.endswith(".REVERSED")


class EventPage(PayPalObject):
    events: list[WebhookEvent] = Field(default_factory=list)
    unreadable: list[InstanceOf[Unreadable]] = Field(default_factory=list)
    links: Links = Field(default_factory=list)

    @model_validator(mode="before")
    @classmethod
    def _read_each(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        listed = value.get("events")
        events, unreadable = read_each(WebhookEvent, listed if isinstance(listed, list) else [])
        return {**value, "events": events, "unreadable": unreadable}

    @property
    def is_empty(self) -> bool:
        return not self.events and not self.unreadable

    @property
    def next(self) -> str:
        """Names the next page. Empty: this is the last one."""
        return urlsplit(linked(self.links, "next")).query
