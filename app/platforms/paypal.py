"""Our apps at PayPal, by which payments and payouts are made: their clients, webhooks and lists of events."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import structlog

from app.http.rows.webhooks import Delivery, InvalidSignature, Verified, WebhookUnverified, platform_config
from app.platforms.accounts import open_paypal, open_verifier
from app.platforms.missed_events import ListedEvent, unreadable_event
from app.services import Services
from storage.configs.kinds.base import ConfigKind
from storage.configs.kinds.payouts import PAYOUTS
from storage.configs.kinds.walletpay import WALLETPAY, PayPalApp
from storage.configs.rows import ConfigKey
from streams.wire.codec import dumps
from streams.wire.errors import ConfigInvalid
from vendors.errors import VendorError
from vendors.payments.paypal.certificates import CERTIFICATE_HOSTS, NotGenuine, check_url
from vendors.payments.paypal.client import PayPal
from vendors.payments.paypal.events import WebhookEvent
from vendors.payments.paypal.webhooks import SignedWebhook

log = structlog.get_logger()

Kind = ConfigKind[Any]
"""A kind whose model extends `PayPalApp`: `WALLETPAY` or `PAYOUTS`."""
_KINDS: dict[str, Kind] = {WALLETPAY.name: WALLETPAY, PAYOUTS.name: PAYOUTS}


def account_of(services: Services, kind: Kind, app_id: str, *, name: str) -> PayPal:
    """Return our app of a config. Raises `ConfigInvalid`."""
    config = services.configs.required(kind, app_id, name).value
    key = ConfigKey(app_id, kind.name, name)
    return open_paypal(services.vendors, config, key=key, sandbox_url=services.settings.sandbox_url)


async def verify_delivery(services: Services, delivery: Delivery, *, kind: Kind) -> Verified:
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


async def verify_webhook(
    verifier: PayPal, config: PayPalApp, headers: Mapping[str, str], body: bytes
) -> SignedWebhook:
    """Verify a webhook that PayPal has sent to our app, by real time at most three days ago, and return it.

    Raises `NotGenuine` for any other, and `VendorError` if it cannot be verified at the moment. Checks that need no
    call come first. PayPal is asked if there are no `certificate_hosts`, or if the certificate cannot be fetched
    from them.
    """
    if not config.webhook_id:
        raise ConfigInvalid(f"{verifier.vendor} {verifier.name}: webhook_id is not set")
    now = datetime.now(UTC)
    webhook = SignedWebhook.read(headers, body, now=now)
    if config.certificate_hosts:
        try:
            await verifier.verify_offline(
                webhook,
                webhook_id=config.webhook_id,
                hosts=config.certificate_hosts,
                authorities=config.certificate_ca,
                now=now,
            )
        except VendorError as error:
            log.warning("webhook.certificate_not_fetched", config=verifier.name, error=error.what)
        else:
            return webhook
    elif config.base_url is None:
        check_url(webhook.certificate_url, hosts=CERTIFICATE_HOSTS, own_authorities=False)
    await verifier.verify_online(webhook, webhook_id=config.webhook_id)
    return webhook


async def event_pages(
    services: Services, key: ConfigKey, since: datetime, until: datetime
) -> AsyncGenerator[Sequence[ListedEvent]]:
    """Yield PayPal's events for a config between two times, page by page."""
    account, page = account_of(services, _KINDS[key.kind], key.app_id, name=key.name), ""
    while True:
        listed = await account.events(start=since, end=until, page=page)
        yield [*map(_listed, listed.events), *map(unreadable_event, listed.unreadable)]
        page = listed.next
        if not page or listed.is_empty:
            return


def _listed(event: WebhookEvent) -> ListedEvent:
    return ListedEvent(event.id, event.event_type, event.create_time, dumps(event.model_dump(mode="json")))
