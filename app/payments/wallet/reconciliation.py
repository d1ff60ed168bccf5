"""Reads orders and subscriptions back from the wallet platform, in case a webhook was lost."""

import time
from collections.abc import Coroutine, Sequence
from datetime import datetime
from typing import Any

from app.payments.wallet import order_sync as wallet_order_sync
from app.payments.wallet import subscription_sync as wallet_subscription_sync
from app.payments.wallet.wallet import soon
from app.platforms.jobs import enqueue_for_configs, read_or_log
from app.services import Services
from storage.configs.kinds.walletpay import WALLETPAY
from storage.configs.rows import ConfigKey
from storage.payments.wallet import orders as wallet_orders
from storage.payments.wallet import subscriptions as wallet_subscriptions
from storage.payments.wallet.orders import WalletOrder
from storage.payments.wallet.reconciliation import ReconcileWallet, ReconcileWallets
from storage.payments.wallet.subscriptions import NEW, WalletSubscription
from streams.tasks import run_all

_AT_ONCE = 8
_WITHIN_S = 50
"""How long one job reads. The next job, a minute later, continues with the rows that are most overdue."""


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
            await wallet_subscription_sync.end_replaced_later(conn, app_id, row=synced)
