"""Webhooks of the card platform. An event is a hint: its object is read from the platform and applied."""

import time
from collections.abc import AsyncGenerator, Sequence
from datetime import UTC, datetime
from typing import Any

import structlog
from pydantic import ValidationError

from app.http.rows.webhooks import Delivery, InvalidSignature, Verified, WebhookSource, platform_config
from app.payments.cards.grants import sync_intent
from app.payments.cards.periods import sync_subscription
from app.payments.cards.platform import CardPlatform, card_platform
from app.payments.cards.reversals import sync_reversals
from app.platforms.missed_events import EventList, ListedEvent, channel_of
from app.services import Services
from storage.assets.entries import Channel
from storage.configs.kinds.cardpay import CARDPAY
from storage.configs.rows import ConfigKey
from storage.jobs.inbox import Webhook
from streams.wire.codec import dumps
from streams.wire.model import Model
from vendors.errors import Refused
from vendors.payments.stripe.objects import Event, Invoice
from vendors.payments.stripe.signature import is_signed

log = structlog.get_logger()

SOURCE = "cardpay"
SIGNATURE = "Stripe-Signature"


class _Listed(Model):
    """The fields that are read of a listed event."""

    id: str
    type: str
    created: int


async def _verify(services: Services, delivery: Delivery) -> Verified:
    config = platform_config(services, CARDPAY, delivery)
    secrets = [secret.get_secret_value() for secret in config.webhook_secrets]
    header = delivery.headers.get(SIGNATURE, "")
    # The platform signs with real time, even if the clock of the app was moved.
    if not is_signed(header, delivery.body, secrets=secrets, now=time.time()):
        raise InvalidSignature
    return Verified(event_id=Event.read(delivery.body).id)


async def _work(services: Services, webhook: Webhook) -> None:
    platform = card_platform(services, webhook.state.app_id, webhook.state.config)
    await apply_event(platform, Event.read(webhook.body), channel=channel_of(webhook))


async def apply_event(platform: CardPlatform, event: Event, *, channel: Channel) -> None:
    """Read the object of an event from the platform, and apply it. Raises `VendorError`."""
    try:
        await _sync_object(platform, event.type, event.data.object, channel=channel)
    except Refused as refused:
        if refused.vendor_status != 404:
            raise
        log.warning("card_event.object_missing", app_id=platform.app_id, event_id=event.id, type=event.type)


async def _sync_object(platform: CardPlatform, kind: str, about: dict[str, Any], *, channel: Channel) -> None:
    name, intent = about.get("id"), about.get("payment_intent")
    if kind.startswith("payment_intent.") and isinstance(name, str):
        await sync_intent(platform, name, channel=channel)
    elif kind.startswith("customer.subscription.") and isinstance(name, str):
        await sync_subscription(platform, name, channel=channel)
    elif kind.startswith("invoice.") and (subscription := _subscription_of(about)) is not None:
        await sync_subscription(platform, subscription, channel=channel)
    elif kind.startswith(("refund.", "charge.refund", "charge.dispute.")) and isinstance(intent, str):
        await sync_reversals(platform, intent, channel=channel)


def _subscription_of(invoice: dict[str, Any]) -> str | None:
    """Return the subscription of an invoice. An invoice of something else, or a malformed one, has none."""
    try:
        return Invoice.model_validate(invoice).subscription_id
    except ValidationError:
        return None


async def _pages(
    services: Services, key: ConfigKey, since: datetime, until: datetime
) -> AsyncGenerator[Sequence[ListedEvent]]:
    """Yield the platform's events between two times, page by page, the newest page first."""
    stripe, after = card_platform(services, key.app_id, key.name).stripe, None
    while True:
        page = await stripe.events(since=int(since.timestamp()), after=after)
        events = [_listed(raw) for raw in page.data]
        yield events
        if not page.has_more or not events:
            return
        after = events[-1].id


def _listed(raw: dict[str, Any]) -> ListedEvent:
    event = _Listed.of(raw)
    return ListedEvent(event.id, event.type, datetime.fromtimestamp(event.created, UTC), dumps(raw))


CARD_WEBHOOKS = WebhookSource(
    SOURCE, "Receive events of the card platform, such as payments.", _verify, _work, headers=(SIGNATURE,)
)
CARD_EVENTS = EventList(
    CARDPAY,
    (
        *("payment_intent.succeeded", "payment_intent.canceled", "charge.refund", "charge.dispute.", "refund."),
        *("customer.subscription.", "invoice.paid"),
    ),
    _pages,
)
