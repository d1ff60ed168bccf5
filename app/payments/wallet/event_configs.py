"""Finds out which config has made the order or the subscription of an event of the wallet platform."""

import structlog
from pydantic import ValidationError

from app.payments.wallet.wallet import account_of, is_final
from app.services import Services
from storage.configs.rows import ConfigKey
from storage.payments.wallet import event_configs as wallet_event_configs
from vendors.payments.paypal.client import PayPal
from vendors.payments.paypal.errors import PayPalRefused
from vendors.payments.paypal.event_resources import EventResource
from vendors.payments.paypal.events import Named, Subject, WebhookEvent

log = structlog.get_logger()


async def config_of(services: Services, key: ConfigKey, body: bytes) -> str | None:
    """Return the config of the app that has made the object of an event, which the config `key` has listed.

    Returns `None` if the app has not made it. Raises `ConfigInvalid` or `VendorError`.
    """
    event = WebhookEvent.read(body)
    try:
        resource = EventResource.model_validate(event.resource)
    except ValidationError:
        return None
    config, named = await _find(services, key.app_id, *resource.ids), event.named
    if config is not None or resource.owner_id or named is None:
        return config
    # The payment has granted nothing yet, or belongs to another program.
    owner_id = await _owner_of(account_of(services, key.app_id, key.name), named, event_id=event.id)
    return await _find(services, key.app_id, owner_id) if owner_id else None


async def _find(services: Services, app_id: str, *ids: str) -> str | None:
    async with services.database.connection() as conn:
        return await wallet_event_configs.find(conn, app_id, ids=ids)


async def _owner_of(account: PayPal, named: Named, *, event_id: str) -> str:
    """Return the order or the subscription of a payment, as the platform reports it. Empty: it has none."""
    try:
        return await _read_owner(account, *named)
    except PayPalRefused as error:
        if not is_final(error):
            raise
        log.warning("wallet_event.payment_missing", event_id=event_id, payment=named.id, error=error.what)
        return ""


async def _read_owner(account: PayPal, subject: Subject, object_id: str) -> str:
    match subject:
        case "capture_refund":
            capture_id = (await account.capture_refund(object_id)).capture_id
            return await _read_owner(account, "capture", capture_id) if capture_id else ""
        case "sale_refund":
            sale_id = (await account.sale_refund(object_id)).sale_id
            return await _read_owner(account, "sale", sale_id) if sale_id else ""
        case "capture":
            return (await account.capture(object_id)).order_id
        case "sale":
            return (await account.sale(object_id)).billing_agreement_id
        case _:
            return ""
