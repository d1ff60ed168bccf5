"""Webhooks of the card platform. An event is a hint: its object is read from the platform, and that is applied."""

import time
from typing import Any

import structlog
from pydantic import ValidationError

from app.http.webhooks import Delivery, InvalidSignature, Verified, WebhookSource, platform_config
from app.payments.card_grants import sync_intent
from app.payments.card_periods import sync_subscription
from app.payments.card_platform import CardPlatform, card_platform
from app.payments.card_reversals import sync_reversals
from app.services import Services
from storage.asset_entries import Channel
from storage.inbox import Webhook
from storage.kinds.cardpay import CARDPAY
from vendors.errors import Refused
from vendors.payments.stripe_objects import Event, Invoice
from vendors.payments.stripe_signature import is_signed

log = structlog.get_logger()

SOURCE = "cardpay"
SIGNATURE = "Stripe-Signature"


_RELEVANT = (
    "payment_intent.succeeded",
    "payment_intent.canceled",
    "charge.refund",
    "charge.dispute.",
    "refund.",
    "customer.subscription.",
    "invoice.paid",
)
"""The beginnings of the types of events that can change what a user owns."""


def is_relevant(kind: str) -> bool:
    """Return whether an event of this type must not be missed."""
    return kind.startswith(_RELEVANT)


async def _verify(services: Services, delivery: Delivery) -> Verified:
    config = platform_config(services, CARDPAY, delivery)
    secrets = [secret.get_secret_value() for secret in config.webhook_secrets]
    header = delivery.headers.get(SIGNATURE, "")
    # The platform signs with real time, whatever time the app has.
    if not is_signed(header, delivery.body, secrets=secrets, now=time.time()):
        raise InvalidSignature
    return Verified(event_id=Event.read(delivery.body).id)


async def _work(services: Services, webhook: Webhook) -> None:
    platform = card_platform(services, webhook.state.app_id, webhook.state.config)
    # What the reconciliation has fetched has no signature.
    channel: Channel = "webhook" if SIGNATURE in webhook.headers else "reconciliation"
    await apply_event(platform, Event.read(webhook.body), channel=channel)


async def apply_event(platform: CardPlatform, event: Event, *, channel: Channel) -> None:
    """Read what an event is about from the platform, and apply it. Raises `VendorError`."""
    try:
        await _sync(platform, event.type, event.data.object, channel=channel)
    except Refused as refused:
        if refused.vendor_status != 404:
            raise
        log.warning("card_event.object_missing", app_id=platform.app_id, event_id=event.id, type=event.type)


async def _sync(platform: CardPlatform, kind: str, about: dict[str, Any], *, channel: Channel) -> None:
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


CARD_WEBHOOKS = WebhookSource(
    SOURCE, "Receive events of the card platform, such as payments.", _verify, _work, headers=(SIGNATURE,)
)
