"""Our apps at PayPal, by which payments and payouts are made: their clients, webhooks and lists of events."""

from collections.abc import AsyncGenerator, Sequence
from datetime import datetime
from typing import Any

import structlog

from app.http.rows.webhooks import Delivery, InvalidSignature, Verified, WebhookUnverified, platform_config
from app.platform_clients.paypal import PayPalClient, open_paypal, open_verifier, verify_webhook
from app.platforms.missed_events import ListedEvent
from app.services import Services
from storage.configs.kinds.base import ConfigKind
from storage.configs.kinds.payouts import PAYOUTS
from storage.configs.kinds.walletpay import WALLETPAY
from storage.configs.rows import ConfigKey
from streams.wire.codec import dumps
from vendors.errors import VendorError
from vendors.payments.paypal_certificates import NotGenuine
from vendors.payments.paypal_events import WebhookEvent, list_webhook_events

log = structlog.get_logger()

Kind = ConfigKind[Any]
"""A kind whose model extends `PayPalApp`: `WALLETPAY` or `PAYOUTS`."""
_KINDS: dict[str, Kind] = {WALLETPAY.name: WALLETPAY, PAYOUTS.name: PAYOUTS}


def client_of(services: Services, kind: Kind, app_id: str, *, name: str) -> PayPalClient:
    """Return the client of a config. Raises `ConfigInvalid`."""
    config = services.configs.required(kind, app_id, name).value
    key = ConfigKey(app_id, kind.name, name)
    return open_paypal(services.vendors, config, key=key, sandbox_url=services.settings.sandbox_url)


async def verify(services: Services, delivery: Delivery, *, kind: Kind) -> Verified:
    """Verify a delivery to one of our apps.

    Raises `PlatformNotFound`, `ConfigInvalid`, `InvalidSignature` or `WebhookUnverified`.
    """
    config = platform_config(services, kind, delivery)
    key = ConfigKey(delivery.app_id, kind.name, delivery.config)
    verifier = open_verifier(services.vendors, config, key=key, sandbox_url=services.settings.sandbox_url)
    try:
        webhook = await verify_webhook(verifier, config, delivery.headers, delivery.body)
    except NotGenuine as error:
        log.info("paypal.webhook_refused", app_id=delivery.app_id, config=delivery.config, reason=str(error))
        raise InvalidSignature from None
    except VendorError as error:
        raise WebhookUnverified(f"the webhook could not be verified: {error.what}") from None
    return Verified(event_id=webhook.event.id, delivery_id=webhook.transmission_id)


async def event_pages(
    services: Services, key: ConfigKey, since: datetime, until: datetime
) -> AsyncGenerator[Sequence[ListedEvent]]:
    """Yield what PayPal lists of the events of a config between two times, page by page."""
    client, page = client_of(services, _KINDS[key.kind], key.app_id, name=key.name), ""
    while True:
        name = page
        listed = await client.call(lambda paypal: list_webhook_events(paypal, start=since, end=until, page=name))  # noqa: B023
        yield [_listed(event) for event in listed.events]
        page = listed.next
        if not page or not listed.events:
            return


def _listed(event: WebhookEvent) -> ListedEvent:
    return ListedEvent(event.id, event.event_type, event.create_time, dumps(event.model_dump(mode="json")))
