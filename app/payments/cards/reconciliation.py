"""Reads payments and subscriptions back from the card platform, in case the webhook about their result was lost."""

import asyncio
from datetime import datetime, timedelta

import structlog

from app.payments.cards.grants import apply_intent, find_intent, sync_intent
from app.payments.cards.periods import find_subscription, sync_subscription
from app.payments.cards.platform import CardPlatform, card_platform
from app.payments.posting import begin_posting
from app.platforms.jobs import enqueue_for_configs, read_or_log
from app.services import Services
from storage.configs.kinds.cardpay import CARDPAY
from storage.configs.rows import ConfigKey
from storage.payments.cards import reconciliation as card_reconciliation
from storage.payments.cards import subscriptions as card_subscriptions
from storage.payments.cards.payments import CardPayment
from storage.payments.cards.reconciliation import (
    ReconcileCardPlatform,
    ReconcileCards,
    next_payment,
    next_subscription,
)
from storage.payments.cards.subscriptions import CardSubscription
from streams.tasks import run_all
from streams.wire.errors import ConfigInvalid

log = structlog.get_logger()

_AT_ONCE = 8
"""The maximum number of rows of a config that are read at a time."""
_WITHIN_S = 45
"""After this time, rows that are still due are left to the job of the next minute."""
_UNANSWERED = timedelta(minutes=2)
"""After this time, a call that the platform does not know of has not arrived."""


async def reconcile_cards(services: Services, _: ReconcileCards) -> None:
    """Store one job for each config of each app."""
    await enqueue_for_configs(
        services, [CARDPAY], lambda key: ReconcileCardPlatform(app_id=key.app_id, config=key.name)
    )


async def reconcile_card_platform(services: Services, job: ReconcileCardPlatform) -> None:
    """Read open rows back from the platform. A failure is logged, and the row is read a minute later."""
    try:
        platform = card_platform(services, job.app_id, job.config)
    except ConfigInvalid as error:
        log.warning("card_platform.skipped", app_id=job.app_id, config=job.config, error=error.what)
        return
    since, until = services.clock.now(job.app_id), asyncio.get_running_loop().time() + _WITHIN_S
    at_once = min(_AT_ONCE, platform.config.concurrency)
    await run_all(_read_due(platform, since=since, until=until) for _ in range(at_once))


async def _read_due(platform: CardPlatform, *, since: datetime, until: float) -> None:
    """Read payments and subscriptions in turn, until none is left that was due at `since`.

    `until`: when to stop, as the event loop's time.
    """
    app_id, config, services = platform.app_id, platform.name, platform.services
    key = ConfigKey(app_id, CARDPAY.name, config)
    while asyncio.get_running_loop().time() < until:
        now = services.clock.now(app_id)
        async with services.database.connection() as conn:
            payment = await next_payment(conn, app_id, config=config, now=now, since=since)
            subscription = await next_subscription(conn, app_id, config=config, now=now, since=since)
        if payment is None and subscription is None:
            return
        if payment is not None:
            await read_or_log(_read_payment(platform, payment, now=now), key, subject=payment.payment_id)
        if subscription is not None:
            reading = _read_subscription(platform, subscription, now=now)
            await read_or_log(reading, key, subject=subscription.row_id)


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
