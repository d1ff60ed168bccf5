"""Webhooks of the wallet platform (§6.4). Each names an object, which is read back and applied."""

from functools import partial

import structlog

from app.http.rows.webhooks import WebhookSource
from app.payments.wallet import order_sync as wallet_order_sync
from app.payments.wallet import subscription_sync as wallet_subscription_sync
from app.payments.wallet.event_configs import config_of
from app.payments.wallet.payment_sync import sync_dispute, sync_payment
from app.payments.wallet.reversals import reversal_of
from app.payments.wallet.wallet import PLATFORM, account_of
from app.platforms import paypal
from app.platforms.missed_events import EventList, channel_of
from app.services import Services
from storage.assets.entries import Channel
from storage.configs.kinds.walletpay import WALLETPAY
from storage.jobs.inbox import Webhook
from storage.payments.wallet import orders as wallet_orders
from storage.payments.wallet import subscriptions as wallet_subscriptions
from vendors.errors import Refused
from vendors.payments.paypal.events import WebhookEvent
from vendors.payments.paypal.refunds import Refund

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
    if (named := event.named) is None:
        return
    subject, object_id = named
    account = account_of(services, app_id, config)
    match subject:
        case "subscription":
            await _sync_subscription(services, app_id, object_id, channel=channel)
        case "order":
            await _sync_order(services, app_id, object_id, channel=channel)
        case "capture":
            await sync_payment(services, app_id, config, object_id, channel=channel)
        case "sale":
            is_paid = event.event_type == "PAYMENT.SALE.COMPLETED"
            subscription_id = (
                event.text("billing_agreement_id") or (await account.sale(object_id)).billing_agreement_id
            )
            await _sync_subscription(
                services, app_id, subscription_id, channel=channel, sale_id=object_id if is_paid else ""
            )
        case "capture_refund":
            refund = await account.capture_refund(object_id)
            await _sync_refund(services, app_id, config, event, refund, channel=channel)
        case "sale_refund":
            refund = await account.sale_refund(object_id)
            await _sync_refund(services, app_id, config, event, refund, channel=channel)
        case "dispute":
            await sync_dispute(services, app_id, config, object_id, channel=channel)


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


async def _sync_refund(
    services: Services, app_id: str, config: str, event: WebhookEvent, refund: Refund, *, channel: Channel
) -> None:
    """Sync the payment that a refund or a reversal is about."""
    payment_id = refund.capture_id or refund.sale_id
    if not payment_id:
        log.warning("wallet.refund_without_payment", app_id=app_id, event_id=event.id, refund_id=refund.id)
        return
    reversal = reversal_of(refund, payment_id, is_reversal=event.is_reversal)
    reported = [] if reversal is None else [reversal]
    await sync_payment(services, app_id, config, payment_id, channel=channel, reported=reported)


async def _sync_order(services: Services, app_id: str, order_id: str, *, channel: Channel) -> None:
    async with services.database.connection() as conn:
        order = await wallet_orders.find(conn, app_id, order_id=order_id)
    if order is not None:
        await wallet_order_sync.sync_order(services, app_id, order, channel=channel)


WALLET_WEBHOOKS = WebhookSource(
    PLATFORM,
    "Receive notifications of the wallet platform.",
    partial(paypal.verify_delivery, kind=WALLETPAY),
    _work,
)
WALLET_EVENTS = EventList(
    WALLETPAY,
    ("BILLING.SUBSCRIPTION.", "CHECKOUT.ORDER.", "PAYMENT.CAPTURE.", "PAYMENT.SALE.", "CUSTOMER.DISPUTE."),
    paypal.event_pages,
    config_of,
)
