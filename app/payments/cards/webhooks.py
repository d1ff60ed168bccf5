"""Webhooks of the card platform. An event is a hint: its object is read from the platform and applied."""

import time
from collections.abc import AsyncGenerator, Sequence
from datetime import UTC, datetime
from typing import Any

import structlog
from pydantic import Field

from app.http.rows.webhooks import Delivery, InvalidSignature, Verified, WebhookSource, platform_config
from app.payments.cards.event_configs import config_of, subject_of
from app.payments.cards.grants import sync_intent
from app.payments.cards.periods import sync_subscription
from app.payments.cards.platform import CardPlatform, card_platform
from app.payments.cards.reversals import sync_reversals
from app.platforms.missed_events import EventList, ListedEvent, channel_of, unreadable_event
from app.services import Services
from storage.assets.entries import Channel
from storage.configs.kinds.cardpay import CARDPAY
from storage.configs.rows import ConfigKey
from storage.jobs.inbox import Webhook
from streams.wire.codec import dumps
from vendors.errors import Refused
from vendors.objects import read_each
from vendors.payments.stripe.objects import Event
from vendors.payments.stripe.signature import is_signed

log = structlog.get_logger()

SOURCE = "cardpay"
SIGNATURE = "Stripe-Signature"


class _Listed(Event):
    """An event in a list."""

    created: int = Field(ge=0, lt=2**32)


async def _verify(services: Services, delivery: Delivery) -> Verified:
    config = platform_config(services, CARDPAY, delivery)
    secrets = [secret.get_secret_value() for secret in config.webhook_secrets]
    header = delivery.headers.get(SIGNATURE, "")
    # The platform signs with real time, even if the clock of the app was moved.
    if not is_signed(header, delivery.body, secrets=secrets, now=time.time()):
        raise InvalidSignature
    return Verified(event_id=Event.read(delivery.body).id)


async def _work(services: Services, webhook: Webhook) -> None:
    """Apply an event, whichever config of the app has made its object. Other events of the account are ignored."""
    app_id, event = webhook.state.app_id, Event.read(webhook.body)
    config = await config_of(card_platform(services, app_id, webhook.state.config), event)
    if config is not None:
        await apply_event(card_platform(services, app_id, config), event, channel=channel_of(webhook))


async def apply_event(platform: CardPlatform, event: Event, *, channel: Channel) -> None:
    """Read the object of an event from the platform that has made it, and apply it. Raises `VendorError`."""
    subject = subject_of(event)
    if subject is None:
        return
    try:
        match subject.kind:
            case "payment":
                await sync_intent(platform, subject.id, channel=channel)
            case "subscription":
                await sync_subscription(platform, subject.id, channel=channel)
            case "reversals":
                await sync_reversals(platform, subject.id, channel=channel)
    except Refused as refused:
        if refused.vendor_status != 404:
            raise
        log.warning("card_event.object_missing", app_id=platform.app_id, event_id=event.id, type=event.type)


async def _config_of(services: Services, key: ConfigKey, body: bytes) -> str | None:
    """Return the config that has made the object of an event, which the config `key` has listed."""
    return await config_of(card_platform(services, key.app_id, key.name), Event.read(body))


async def _pages(
    services: Services, key: ConfigKey, since: datetime, until: datetime
) -> AsyncGenerator[Sequence[ListedEvent]]:
    """Yield the platform's events between two times, page by page, the newest page first."""
    stripe, after = card_platform(services, key.app_id, key.name).stripe, None
    while True:
        page = await stripe.events(since=int(since.timestamp()), after=after)
        events = [_listed(raw) for raw in page.data]
        yield events
        readable = [event for event in events if not event.fault]
        if not page.has_more or not readable:
            return
        after = readable[-1].id


def _listed(raw: Any) -> ListedEvent:
    read, unreadable = read_each(_Listed, [raw])
    if unreadable:
        return unreadable_event(unreadable[0])
    return ListedEvent(read[0].id, read[0].type, datetime.fromtimestamp(read[0].created, UTC), dumps(raw))


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
    _config_of,
)
