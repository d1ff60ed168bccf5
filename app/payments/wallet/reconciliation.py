"""Reads orders and subscriptions back from the wallet platform, in case a webhook was lost."""

import time
from collections.abc import AsyncGenerator, Coroutine, Sequence
from datetime import datetime
from typing import Any

import structlog

from app.payments.wallet import order_sync as wallet_order_sync
from app.payments.wallet import subscription_states as wallet_subscription_states
from app.payments.wallet import subscription_sync as wallet_subscription_sync
from app.payments.wallet.payment_sync import sync_dispute
from app.payments.wallet.reversals import DAY, READ_FOR
from app.payments.wallet.wallet import account_of, is_final, soon
from app.platforms.jobs import enqueue_for_configs, read_or_log
from app.services import Services
from storage.configs.kinds.walletpay import WALLETPAY
from storage.configs.rows import ConfigKey
from storage.payments import missed_events
from storage.payments.wallet import orders as wallet_orders
from storage.payments.wallet import subscriptions as wallet_subscriptions
from storage.payments.wallet.orders import WalletOrder
from storage.payments.wallet.reconciliation import ReconcileWallet, ReconcileWallets
from storage.payments.wallet.subscriptions import NEW, WalletSubscription
from streams.tasks import run_all
from vendors.payments.paypal.errors import PayPalRefused

log = structlog.get_logger()

_AT_ONCE = 8
_WITHIN_S = 50
"""How long one job reads. The next job, a minute later, continues with the rows that are most overdue."""
_DISPUTES = "walletpay_disputes"
"""Names the time until which the disputes of a config are read."""


async def reconcile_wallets(services: Services, _: ReconcileWallets) -> None:
    """Store one job for each config of each app."""
    await enqueue_for_configs(
        services, [WALLETPAY], lambda key: ReconcileWallet(app_id=key.app_id, config=key.name)
    )


async def reconcile_wallet(services: Services, job: ReconcileWallet) -> None:
    """Read back the rows that are due, the most overdue first. A row that fails is due again in a minute."""
    now, until = services.clock.now(job.app_id), time.monotonic() + _WITHIN_S
    while checks := await _claim(services, job, now=now):
        await run_all(checks)
        if time.monotonic() >= until:
            break
    key = ConfigKey(job.app_id, WALLETPAY.name, job.config)
    await read_or_log(_read_disputes(services, key, now=now), key, subject="disputes")


async def _read_disputes(services: Services, key: ConfigKey, *, now: datetime) -> None:
    """Once a day, read the disputes that have changed since, in case their events were lost.

    One list for all payments costs less than a call for each of them.
    """
    cursor = key._replace(kind=_DISPUTES)
    async with services.database.connection() as conn:
        last = await missed_events.compared_until(conn, cursor)
    if last is not None and now < last + DAY:
        return
    earliest = now - READ_FOR + DAY  # The platform refuses times before the last 180 days.
    since = earliest if last is None else max(last - DAY, earliest)
    changed: list[str] = []
    try:
        changed = [dispute_id async for dispute_id in _changed_disputes(services, key, since=since)]
    except PayPalRefused as error:
        if not is_final(error):
            raise
        log.warning("wallet.disputes_refused", app_id=key.app_id, config=key.name, error=error.what)
    for dispute_id in changed:  # One that fails is read again the next day.
        reading = sync_dispute(services, key.app_id, key.name, dispute_id, channel="reconciliation")
        await read_or_log(reading, key, subject=dispute_id)
    async with services.database.connection() as conn:
        await missed_events.set_compared(conn, cursor, until=now)


async def _changed_disputes(services: Services, key: ConfigKey, *, since: datetime) -> AsyncGenerator[str]:
    account, page = account_of(services, key.app_id, key.name), ""
    while True:
        listed = await account.disputes(since=since, page=page)
        for dispute in listed.items:
            yield dispute.dispute_id
        page = listed.next
        if not page or not listed.items:
            return


async def _claim(services: Services, job: ReconcileWallet, *, now: datetime) -> Sequence[Coroutine[Any, Any, None]]:
    """Claim due rows for a minute, and return the coroutines that read them back."""
    app_id, key = job.app_id, ConfigKey(job.app_id, WALLETPAY.name, job.config)
    async with services.database.transaction() as conn:
        orders = await wallet_orders.claim_due(
            conn, app_id, config=job.config, now=now, again_at=soon(now), limit=_AT_ONCE
        )
        rows = await wallet_subscriptions.claim_due(
            conn, app_id, config=job.config, now=now, again_at=soon(now), limit=_AT_ONCE
        )
    return [
        *(read_or_log(_check_order(services, app_id, order), key, subject=order.row_id) for order in orders),
        *(read_or_log(_check_subscription(services, app_id, row), key, subject=row.row_id) for row in rows),
    ]


async def _check_order(services: Services, app_id: str, order: WalletOrder) -> None:
    if order.status == NEW:
        await wallet_order_sync.complete_creation(services, app_id, order)
    else:
        await wallet_order_sync.sync_order(services, app_id, order, channel="reconciliation")


async def _check_subscription(services: Services, app_id: str, row: WalletSubscription) -> None:
    if row.status == NEW:
        await wallet_subscription_sync.complete_creation(services, app_id, row)
        return
    synced = (await wallet_subscription_sync.sync_subscription(services, app_id, row, channel="reconciliation")).row
    if synced.superseded_at is not None:
        async with services.database.transaction() as conn:
            await wallet_subscription_states.end_replaced_later(conn, app_id, row=synced)
