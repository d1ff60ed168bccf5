"""The events of PayPal's webhooks: what they are about, and the list of those that PayPal has sent."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from pydantic import Field

from streams.wire.codec import rfc3339
from streams.wire.model import Moment
from vendors.payments.paypal import PayPal
from vendors.payments.paypal_fields import Link, PayPalObject, linked

_EVENTS = "/v1/notifications/webhooks-events"
_PAGE = 100


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


async def list_webhook_events(paypal: PayPal, *, start: datetime, end: datetime, page: str = "") -> EventPage:
    """Return a page of the app's events between two times, whether a webhook has delivered them or not.

    `page` is the `next` of the page before.
    """
    first = {"page_size": str(_PAGE), "start_time": rfc3339(start), "end_time": rfc3339(end)}
    # The link names a host too, but calls go to the configured one.
    return await paypal.get(_EVENTS, EventPage, dict(parse_qsl(page)) or first)
