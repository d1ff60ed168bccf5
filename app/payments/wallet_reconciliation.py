"""Jobs that repair what no webhook of the wallet platform has reported."""

import asyncio
from collections.abc import Coroutine, Sequence
from datetime import datetime, timedelta
from typing import Any

import structlog

from app.payments import wallet_order_reads, wallet_upgrades
from app.payments.wallet import PLATFORM, client_of, soon
from app.payments.wallet_webhooks import MISSED
from app.services import Services
from storage import inbox
from storage.inbox import NewWebhook
from storage.kinds.walletpay import WALLETPAY
from storage.payments import mismatches, wallet_events, wallet_orders, wallet_subscriptions
from storage.payments.wallet_events import FindMissedWalletEvents, ReconcileWallets
from storage.payments.wallet_orders import WalletOrder
from storage.payments.wallet_subscriptions import NEW, WalletSubscription
from streams.wire.codec import dumps
from streams.wire.errors import ServiceError, StoreError
from vendors.payments.paypal_events import WebhookEvent, list_webhook_events

log = structlog.get_logger()

_AT_ONCE = 8
_FIRST = timedelta(days=3)
"""How far back events are compared at first."""
_GRACE = timedelta(minutes=2)
"""Younger events may still be on their way."""
_OVERLAP = timedelta(hours=1)
"""Events may be listed later than they happen."""


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
        await wallet_order_reads.complete_creation(services, app_id, order)
    else:
        await wallet_order_reads.sync(services, app_id, order, channel="reconciliation")


async def _check_subscription(services: Services, app_id: str, row: WalletSubscription) -> None:
    if row.status == NEW:
        await wallet_upgrades.complete_creation(services, app_id, row)
        return
    synced = (await wallet_upgrades.sync(services, app_id, row, channel="reconciliation")).row
    if synced.superseded_at is not None:
        async with services.database.transaction() as conn:
            await wallet_upgrades.settle_later(conn, app_id, row=synced)


async def find_missed_events(services: Services, _: FindMissedWalletEvents) -> None:
    """Compare the events of each config with the inbox."""
    for app_id in services.configs.apps():
        for config in services.configs.names(WALLETPAY, app_id):
            await _logged(_compare(services, app_id, config))


async def _compare(services: Services, app_id: str, config: str) -> None:
    """Store the events that are not in the inbox, from the last comparison on. A job works on them."""
    client, until = client_of(services, app_id, config), services.clock.now(app_id) - _GRACE
    async with services.database.connection() as conn:
        last = await wallet_events.compared_until(conn, app_id, config=config)
    start, page = (until - _FIRST if last is None else min(last, until) - _OVERLAP), ""
    while True:
        name = page
        found = await client.call(lambda paypal: list_webhook_events(paypal, start=start, end=until, page=name))  # noqa: B023
        await _store_missed(services, app_id, config, found.events, before=until)
        page = found.next
        if not page or not found.events:
            break
    async with services.database.connection() as conn:
        await wallet_events.set_compared(conn, app_id, config=config, until=until)


async def _store_missed(
    services: Services, app_id: str, config: str, events: Sequence[WebhookEvent], *, before: datetime
) -> None:
    now = services.clock.now(app_id)
    async with services.database.transaction() as conn:
        stored = await wallet_events.stored_events(
            conn, app_id, source=PLATFORM, config=config, event_ids=[event.id for event in events]
        )
        for event in events:
            if event.id in stored or (event.create_time is not None and event.create_time > before):
                continue
            body = dumps(event.model_dump(mode="json"))
            new = NewWebhook(app_id, PLATFORM, config, event.id, None, {MISSED: "true"}, body)
            if await inbox.receive(conn, new, now=now):
                await mismatches.add(
                    conn, app_id,
                    platform=PLATFORM, kind="missed_event", subject=event.id, detail=event.event_type, now=now,
                )  # fmt: skip
