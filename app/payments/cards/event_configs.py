"""What events of the card platform are about, and which config has made it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import structlog
from pydantic import ValidationError

from app.payments.cards.grants import PAYMENT_ID
from app.payments.cards.periods import ROW_ID
from app.payments.cards.platform import CardPlatform
from storage.payments.cards import event_configs as card_event_configs
from vendors.errors import Refused
from vendors.payments.stripe.objects import Event, Invoice

log = structlog.get_logger()

_REVERSALS = ("refund.", "charge.refund", "charge.dispute.")
_MISSING = 404


@dataclass(frozen=True, slots=True)
class EventSubject:
    """The payment, the subscription, or the payment with its reversals, that an event is about."""

    kind: Literal["payment", "subscription", "reversals"]
    id: str
    """The payment intent, or the subscription."""
    metadata: Mapping[str, Any] | None
    """The object's metadata, if the event has it."""


def subject_of(event: Event) -> EventSubject | None:
    """Return what an event is about. `None`: nothing that we apply."""
    about, kind = event.data.object, event.type
    match about:
        case {"id": str(id_)} if kind.startswith("payment_intent."):
            return EventSubject("payment", id_, _metadata(about))
        case {"id": str(id_)} if kind.startswith("customer.subscription."):
            return EventSubject("subscription", id_, _metadata(about))
        case {"payment_intent": str(intent_id)} if kind.startswith(_REVERSALS):
            return EventSubject("reversals", intent_id, None)
    return _subscription_of(about) if kind.startswith("invoice.") else None


def _subscription_of(about: Mapping[str, Any]) -> EventSubject | None:
    """Return the subscription of an invoice. An invoice of something else, or a malformed one, has none."""
    try:
        subscription_id = Invoice.model_validate(about).subscription_id
    except ValidationError:
        return None
    if subscription_id is None:
        return None
    match about:
        case {"parent": {"subscription_details": {"metadata": dict(metadata)}}}:
            return EventSubject("subscription", subscription_id, metadata)
    return EventSubject("subscription", subscription_id, None)


def _metadata(about: Mapping[str, Any]) -> Mapping[str, Any] | None:
    metadata = about.get("metadata")
    return metadata if isinstance(metadata, Mapping) else None


async def config_of(platform: CardPlatform, event: Event) -> str | None:
    """Return the config of the app that has made the object of an event, which `platform` has received or listed.

    Returns `None` if the app has not made it. Raises `VendorError`.
    """
    subject = subject_of(event)
    if subject is None:
        return None
    try:
        return await _config_of(platform, subject)
    except Refused as refused:
        if refused.vendor_status != _MISSING:
            raise
        log.warning("card_event.object_missing", app_id=platform.app_id, event_id=event.id, type=event.type)
        return None


async def _config_of(platform: CardPlatform, subject: EventSubject) -> str | None:
    match subject.kind:
        case "payment":
            return await _config_of_payment(platform, subject.id, subject.metadata)
        case "subscription":
            return await _config_of_subscription(platform, subject.id, subject.metadata)
    config = await _config_of_payment(platform, subject.id, None)
    if config is None:  # It may have paid an invoice that is not known yet.
        for payment in await platform.stripe.invoices_paid_by(subject.id):
            invoice = None if payment.invoice is None else await platform.stripe.invoice(payment.invoice)
            if invoice is not None and invoice.subscription_id is not None:
                return await _config_of_subscription(platform, invoice.subscription_id, None)
    return config


async def _config_of_payment(
    platform: CardPlatform, intent_id: str, metadata: Mapping[str, Any] | None
) -> str | None:
    """Return the config of a payment. If its row has no id of the platform yet, the metadata names the row."""
    if (config := await _find(platform, intent_id=intent_id)) is not None:
        return config
    if metadata is None:
        metadata = (await platform.stripe.payment_intent(intent_id)).metadata
    payment_id = metadata.get(PAYMENT_ID)
    return (
        await _find(platform, intent_id=intent_id, payment_id=payment_id) if isinstance(payment_id, str) else None
    )


async def _config_of_subscription(
    platform: CardPlatform, subscription_id: str, metadata: Mapping[str, Any] | None
) -> str | None:
    """Return the config of a subscription, as `_config_of_payment` does."""
    if (config := await _find(platform, subscription_id=subscription_id)) is not None:
        return config
    if metadata is None:
        metadata = (await platform.stripe.subscription(subscription_id)).metadata
    row_id = metadata.get(ROW_ID)
    return await _find(platform, row_id=row_id) if isinstance(row_id, str) else None


async def _find(platform: CardPlatform, **ids: str) -> str | None:
    async with platform.services.database.connection() as conn:
        return await card_event_configs.find(conn, platform.app_id, **ids)
