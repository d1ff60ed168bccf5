"""The job that repairs what no webhook of the wallet platform has reported."""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any

import structlog

from app.payments import wallet_order_sync, wallet_subscription_sync
from app.payments.wallet import soon
from app.services import Services
from storage.payments import wallet_orders, wallet_subscriptions
from storage.payments.wallet_events import ReconcileWallets
from storage.payments.wallet_orders import WalletOrder
from storage.payments.wallet_subscriptions import NEW, WalletSubscription
from streams.wire.errors import ServiceError, StoreError

log = structlog.get_logger()

_AT_ONCE = 8


async def reconcile_wallets(services: Services, _: ReconcileWallets) -> None:
    """Read back what is due in each app. What fails is due again after a minute."""
    for app_id in services.configs.apps():
        while True:
            now = services.clock.now(app_id)
            async with services.database.transaction() as conn:
                orders = await wallet_orders.claim_due(conn, app_id, now=now, again_at=soon(now), limit=_AT_ONCE)
                rows = await wallet_subscriptions.claim_due(
                    conn, app_id, now=now, again_at=soon(now), limit=_AT_ONCE
                )
            if not orders and not rows:
                break
            checks: Sequence[Coroutine[Any, Any, None]] = [
                *(_check_order(services, app_id, order) for order in orders),
                *(_check_subscription(services, app_id, row) for row in rows),
            ]
            await asyncio.gather(*map(_logged, checks))


async def _logged(check: Coroutine[Any, Any, None]) -> None:
    """Log why a check failed, unless our own stores are the cause."""
    try:
        await check
    except StoreError:
        raise
    except ServiceError as error:
        log.warning("wallet.check_failed", error=str(error))


async def _check_order(services: Services, app_id: str, order: WalletOrder) -> None:
    if order.status == NEW:
        await wallet_order_sync.complete_creation(services, app_id, order)
    else:
        await wallet_order_sync.sync(services, app_id, order, channel="reconciliation")


async def _check_subscription(services: Services, app_id: str, row: WalletSubscription) -> None:
    if row.status == NEW:
        await wallet_subscription_sync.complete_creation(services, app_id, row)
        return
    synced = (await wallet_subscription_sync.sync(services, app_id, row, channel="reconciliation")).row
    if synced.superseded_at is not None:
        async with services.database.transaction() as conn:
            await wallet_subscription_sync.settle_later(conn, app_id, row=synced)
