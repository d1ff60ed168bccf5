"""Our apps at PayPal, by which payments and payouts are made: their clients, and the webhooks that they receive."""

from typing import Any

import structlog

from actors.paypal_clients import PayPalClient, open_paypal, verify_webhook
from app.http.webhooks import Delivery, InvalidSignature, Verified, WebhookUnverified, platform_config
from app.services import Services
from storage.config_rows import ConfigKey
from storage.kinds.base import ConfigKind
from vendors.errors import VendorError
from vendors.payments.paypal_certificates import NotGenuine

log = structlog.get_logger()

Kind = ConfigKind[Any]
"""A kind whose model extends `PayPalApp`: `WALLETPAY` or `PAYOUTS`."""


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
    client = client_of(services, kind, delivery.app_id, name=delivery.config)
    try:
        webhook = await verify_webhook(client, config, delivery.headers, delivery.body)
    except NotGenuine as error:
        log.info("paypal.webhook_refused", app_id=delivery.app_id, config=delivery.config, reason=str(error))
        raise InvalidSignature from None
    except VendorError as error:
        raise WebhookUnverified(f"the webhook could not be verified: {error.what}") from None
    return Verified(event_id=webhook.event.id, delivery_id=webhook.transmission_id)
