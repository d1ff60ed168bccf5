"""Webhooks of PayPal, which our apps there receive for payments and for payouts."""

import structlog

from actors.paypal_clients import PayPalClient, verify_webhook
from app.http.webhooks import Delivery, InvalidSignature, Verified, WebhookUnverified
from storage.kinds.walletpay import PayPalApp
from vendors.errors import VendorError
from vendors.payments.paypal_certificates import NotGenuine

log = structlog.get_logger()


async def verify(client: PayPalClient, config: PayPalApp, delivery: Delivery) -> Verified:
    """Verify a delivery to one of our apps. Raises `InvalidSignature` or `WebhookUnverified`."""
    try:
        webhook = await verify_webhook(client, config, delivery.headers, delivery.body)
    except NotGenuine as error:
        log.info("paypal.webhook_refused", app_id=delivery.app_id, config=delivery.config, reason=str(error))
        raise InvalidSignature from None
    except VendorError as error:
        raise WebhookUnverified(f"the webhook could not be verified: {error.what}") from None
    return Verified(event_id=webhook.event.id, delivery_id=webhook.transmission_id)
