"""Reads orders and subscriptions back from the wallet platform, in case a webhook was lost."""

import time
from collections.abc import Coroutine, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import groupby
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
from vendors.payments.paypal.disputes import ListedDispute
from vendors.payments.paypal.errors import PayPalRefused

log = structlog.get_logger()

_AT_ONCE = 8
_WITHIN_S = 50
"""How long one job reads. The next job, a minute later, continues with the rows that are most overdue."""
_DISPUTES_S = 10
"""How long one job reads disputes at least, however many rows are due."""
_ENDED = "walletpay_disputes"
"""Names the time at which the last pass has ended."""
_READ = "walletpay_disputes_read"
"""Names the time of the changes up to which disputes are read."""
_WINDOW = timedelta(days=7)
"""The changes of so long are listed before the first of them is read, because lists have no documented order."""
_NEXT = timedelta(milliseconds=1)
"""The times of the platform have no smaller parts."""


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
    within_s = max(until - time.monotonic(), _DISPUTES_S)
    await read_or_log(read_disputes(services, key, now=now, within_s=within_s), key, subject="disputes")


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


async def read_disputes(services: Services, key: ConfigKey, *, now: datetime, within_s: float) -> None:
    """Once a day, read the disputes that have changed since, in the order of their changes.

    One list for all payments costs less than a call for each of them. It stops at the first change, or the first
    week without any, after `within_s`. The next call continues there. Raises `ConfigInvalid` or `VendorError`.
    """
    async with services.database.connection() as conn:
        last = await missed_events.compared_until(conn, key._replace(kind=_ENDED))
        read = await missed_events.compared_until(conn, key._replace(kind=_READ))
    if last is not None and now < last + DAY:
        return
    earliest = now - READ_FOR + DAY  # The platform refuses times before the last 180 days.
    begun = read if read is not None else last - DAY if last is not None else earliest
    try:
        if not await _pass(services, key, since=max(begun, earliest), now=now, until=time.monotonic() + within_s):
            return
        # Disputes may be listed late, and those that have failed are read again.
        await _set_read(services, key, until=now - DAY)
    except PayPalRefused as error:
        if not is_final(error):
            raise
        log.warning("wallet.disputes_refused", app_id=key.app_id, config=key.name, error=error.what)
    async with services.database.connection() as conn:
        await missed_events.set_compared(conn, key._replace(kind=_ENDED), until=now)


async def _pass(services: Services, key: ConfigKey, *, since: datetime, now: datetime, until: float) -> bool:
    """Read what has changed since a time, and store how far it is read. Return whether that is all."""
    await _set_read(services, key, until=since)
    while since < now:
        before = min(since + _WINDOW, now)
        changed = await _changed(services, key, since=since, before=before if before < now else None)
        for at, disputes in _by_time(changed, since=since):
            for dispute in disputes:
                reading = sync_dispute(services, key.app_id, key.name, dispute.dispute_id, channel="reconciliation")
                await read_or_log(reading, key, subject=dispute.dispute_id)
            await _set_read(services, key, until=at + _NEXT)
            if time.monotonic() >= until:
                return False
        since = before
        await _set_read(services, key, until=since)
        if time.monotonic() >= until:
            return since >= now
    return True


async def _changed(
    services: Services, key: ConfigKey, *, since: datetime, before: datetime | None
) -> list[ListedDispute]:
    """List the disputes whose last change is between two times, or since the first."""
    account, page, found = account_of(services, key.app_id, key.name), "", list[ListedDispute]()
    while True:
        listed = await account.disputes(since=since, before=before, page=page)
        found += listed.items
        page = listed.next
        if not page or not listed.items:
            return found


def _by_time(
    disputes: Iterable[ListedDispute], *, since: datetime
) -> Iterator[tuple[datetime, Iterator[ListedDispute]]]:
    """Yield disputes by the time of their last change, the earliest first."""

    def changed_at(dispute: ListedDispute) -> datetime:
        return max(dispute.update_time or dispute.create_time or since, since)

    return groupby(sorted(disputes, key=changed_at), key=changed_at)


async def _set_read(services: Services, key: ConfigKey, *, until: datetime) -> None:
    async with services.database.connection() as conn:
        await missed_events.set_compared(conn, key._replace(kind=_READ), until=until)
