"""Reads open rows back from the card platform, of which no webhook has reported what became of them."""

from collections.abc import Awaitable
from datetime import datetime, timedelta

import structlog

from app.payments.card_grants import apply_intent, find_intent, sync_intent
from app.payments.card_periods import find_subscription, sync_subscription
from app.payments.card_platform import CardPlatform, card_platform
from app.payments.posting import begin_posting
from app.services import Services
from storage.jobs import enqueue
from storage.kinds.cardpay import CARDPAY
from storage.payments import card_reconciliation, card_subscriptions
from storage.payments.card_payments import CardPayment
from storage.payments.card_reconciliation import ReconcileCardPlatform, ReconcileCards
from storage.payments.card_subscriptions import CardSubscription
from streams.wire.errors import ConfigInvalid, ServiceError, StoreError

log = structlog.get_logger()

_ROWS = 100
_UNANSWERED = timedelta(minutes=2)
"""After this time, a call of which the platform knows nothing has not arrived."""


async def reconcile_cards(services: Services, _: ReconcileCards) -> None:
    """Store one job for each config of each app, so that a slow platform does not delay the others."""
    for app_id in await services.configs.all_apps():
        for name in services.configs.names(CARDPAY, app_id):
            async with services.database.transaction() as conn:
                job = ReconcileCardPlatform(app_id=app_id, config=name)
                await enqueue(conn, job, key=f"cards/{app_id}/{name}")


async def reconcile_card_platform(services: Services, job: ReconcileCardPlatform) -> None:
    """Read open rows back from the platform. What fails is logged, and done a minute later."""
    try:
        platform = card_platform(services, job.app_id, job.config)
    except ConfigInvalid as error:
        log.warning("card_platform.skipped", app_id=job.app_id, config=job.config, error=error.what)
        return
    now = services.clock.now(job.app_id)
    async with services.database.connection() as conn:
        payments = await card_reconciliation.open_payments(
            conn, job.app_id, config=job.config, now=now, limit=_ROWS
        )
        subscriptions = await card_reconciliation.open_subscriptions(
            conn, job.app_id, config=job.config, now=now, limit=_ROWS
        )
    for payment in payments:
        await _logged(platform, _read_payment(platform, payment, now=now), subject=payment.payment_id)
    for subscription in subscriptions:
        await _logged(platform, _read_subscription(platform, subscription, now=now), subject=subscription.row_id)


async def _logged(platform: CardPlatform, work: Awaitable[None], *, subject: str) -> None:
    try:
        await work
    except StoreError:
        raise
    except ServiceError as error:
        log.warning(
            "platform.unread",
            app_id=platform.app_id,
            kind=CARDPAY.name,
            config=platform.name,
            subject=subject,
            error=str(error),
        )


async def _read_payment(platform: CardPlatform, payment: CardPayment, *, now: datetime) -> None:
    if payment.intent_id is not None:
        await sync_intent(platform, payment.intent_id, channel="reconciliation")
        return
    if payment.created_at > now - _UNANSWERED:
        return
    intent = await find_intent(platform, payment)
    async with platform.services.database.transaction() as conn:
        if intent is not None:
            posting = await begin_posting(
                platform.services, conn, payment.app_id, payment.uid, channel="reconciliation"
            )
            await apply_intent(posting, payment, intent)
        else:
            await card_reconciliation.abandon_payment(conn, payment.payment_id)


async def _read_subscription(platform: CardPlatform, row: CardSubscription, *, now: datetime) -> None:
    if row.subscription_id is not None:
        await sync_subscription(platform, row.subscription_id, channel="reconciliation")
        return
    if row.created_at > now - _UNANSWERED:
        return
    subscription = await find_subscription(platform, row)
    if subscription is not None:
        await sync_subscription(platform, subscription.id, channel="reconciliation")
        return
    async with platform.services.database.connection() as conn:
        await card_subscriptions.close(conn, row.row_id, status="abandoned")
