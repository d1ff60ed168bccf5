"""Webhooks of the wallet platform (§6.4). Each names an object, which is read back and applied."""

from functools import partial
from typing import Any

import structlog

from app.http.rows.webhooks import WebhookSource
from app.payments.wallet import order_sync as wallet_order_sync
from app.payments.wallet import subscription_sync as wallet_subscription_sync
from app.payments.wallet.event_configs import config_of
from app.payments.wallet.wallet import PLATFORM, account_of
from app.platforms import paypal
from app.platforms.missed_events import EventList, channel_of
from app.services import Services
from storage.assets.entries import Channel
from storage.configs.kinds.walletpay import WALLETPAY
from storage.jobs.inbox import Webhook
from storage.payments.wallet import orders as wallet_orders
from storage.payments.wallet import refunds as wallet_refunds
from storage.payments.wallet import subscriptions as wallet_subscriptions
from vendors.errors import Refused
from vendors.payments.paypal.events import WebhookEvent

log = structlog.get_logger()


async def _work(services: Services, webhook: Webhook) -> None:
    """Read back the object that a stored webhook names, and apply it."""
    state = webhook.state
    event = WebhookEvent.read(webhook.body)
    await apply_event(services, state.app_id, state.config, event, channel=channel_of(webhook))


async def apply_event(
    services: Services, app_id: str, config: str, event: WebhookEvent, *, channel: Channel
) -> None:
    """Read back the object that an event names, and apply it. Unknown objects are ignored."""
    resource = event.resource
    match event.event_type.split("."):
        case ["BILLING", "SUBSCRIPTION", *_]:
            await _sync_subscription(services, app_id, _text(resource, "id"), channel=channel)
        case ["PAYMENT", "SALE", "REFUNDED"]:
            await _apply_sale_refund(services, app_id, config, _text(resource, "id"), channel=channel)
        case ["PAYMENT", "SALE", what]:
            sale_id = _text(resource, "id") if what == "COMPLETED" else ""
            subscription_id = _text(resource, "billing_agreement_id")
            await _sync_subscription(services, app_id, subscription_id, channel=channel, sale_id=sale_id)
        case ["CHECKOUT", "ORDER", *_]:
            await _sync_order(services, app_id, _text(resource, "id"), channel=channel)
        case ["PAYMENT", "CAPTURE", what]:
            order_id = await _order_of(services, app_id, config, resource, is_refund=what == "REFUNDED")
            await _sync_order(services, app_id, order_id, channel=channel)
        case _:
            return


async def _sync_subscription(
    services: Services, app_id: str, subscription_id: str, *, channel: Channel, sale_id: str = ""
) -> None:
    """Apply a subscription. Raises a retryable error if the platform does not list the payment `sale_id` yet."""
    async with services.database.connection() as conn:
        row = await wallet_subscriptions.find(conn, app_id, subscription_id=subscription_id)
    if row is None:
        return
    synced = await wallet_subscription_sync.sync_subscription(services, app_id, row, channel=channel)
    if sale_id and all(payment.id != sale_id for payment in synced.read.transactions):
        raise Refused(PLATFORM, "does not yet list a payment that it has reported", retryable=True)


async def _apply_sale_refund(
    services: Services, app_id: str, config: str, refund_id: str, *, channel: Channel
) -> None:
    """Read back a refund and store it, then sync the subscription whose payment it refunds."""
    account = account_of(services, app_id, config)
    refund = await account.sale_refund(refund_id)
    sale = await account.sale(refund.sale_id)
    async with services.database.transaction() as conn:
        row = await wallet_subscriptions.find(conn, app_id, subscription_id=sale.billing_agreement_id)
        if row is None:
            return
        if refund.amount is not None and refund.status == "COMPLETED":
            await wallet_refunds.add_reported(
                conn, app_id,
                sale_id=sale.id, subscription_row=row.row_id, refund_id=refund.id, amount=refund.amount,
                now=services.clock.now(app_id),
            )  # fmt: skip
    await wallet_subscription_sync.sync_subscription(services, app_id, row, channel=channel)


async def _sync_order(services: Services, app_id: str, order_id: str, *, channel: Channel) -> None:
    async with services.database.connection() as conn:
        order = await wallet_orders.find(conn, app_id, order_id=order_id)
    if order is not None:
        await wallet_order_sync.sync_order(services, app_id, order, channel=channel)


async def _order_of(services: Services, app_id: str, config: str, resource: Any, *, is_refund: bool) -> str:
    """Return the id of the order of a capture, or of a refund of one, as the platform reports it."""
    account, capture_id = account_of(services, app_id, config), _text(resource, "id")
    if is_refund:
        capture_id = (await account.capture_refund(capture_id)).capture_id
    return (await account.capture(capture_id)).order_id if capture_id else ""


def _text(resource: Any, field: str) -> str:
    """Return a text field of an event. Empty: it is missing, or no text."""
    value = resource.get(field)
    return value if isinstance(value, str) else ""


WALLET_WEBHOOKS = WebhookSource(
    PLATFORM,
    "Receive notifications of the wallet platform.",
    partial(paypal.verify_delivery, kind=WALLETPAY),
    _work,
)
WALLET_EVENTS = EventList(
    WALLETPAY,
    ("BILLING.SUBSCRIPTION.", "CHECKOUT.ORDER.", "PAYMENT.CAPTURE.", "PAYMENT.SALE."),
    paypal.event_pages,
    config_of,
)
