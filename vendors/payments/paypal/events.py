"""PayPal's events, as in webhooks and in the list of those that PayPal has sent."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from pydantic import Field

from streams.wire.model import Moment
from vendors.payments.paypal.fields import Link, PayPalObject, linked


class WebhookEvent(PayPalObject):
    """An event, as in the body of a webhook. It may be old: read the object that it names."""

    id: str = Field(min_length=1, max_length=255)
    event_type: str = ""
    create_time: Moment | None = None
    resource_type: str = ""
    resource: Mapping[str, Any] = Field(default_factory=dict)


class EventPage(PayPalObject):
    events: list[WebhookEvent] = Field(default_factory=list)
    links: list[Link] = Field(default_factory=list)

    @property
    def next(self) -> str:
        """Names the next page. Empty: this is the last one."""
        return urlsplit(linked(self.links, "next")).query
