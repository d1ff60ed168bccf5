"""Upgrades of wallet subscriptions (§3.4): a new subscription replaces the old one once it is active and paid.

Then, in one transaction, the asset of the new one is granted, that of the old one ends, and what is unused of its
payments is stored as refunds. A job cancels the old one and makes the refunds. The first of several upgrades whose
subscription is paid replaces the old one. Any other is cancelled too, and refunded in full.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import structlog

from app.payments import wallet_subscription_states
from app.payments.posting import Posting, begin_posting
from app.payments.wallet import PLATFORM, client_of, is_final
from app.payments.wallet_periods import post_end
from app.payments.wallet_subscription_states import SubscriptionRead, apply, read
from app.services import Services
from storage import share_groups
from storage.asset_entries import Channel
from storage.event_outbox import PurchaseEvent
from storage.jobs import enqueue
from storage.payments import endings, mismatches, wallet_refunds, wallet_subscriptions, wallet_upgrades
from storage.payments.wallet_refunds import PendingRefund
from storage.payments.wallet_subscriptions import ENDED, RENEWING, SettleSubscription, WalletSubscription
from storage.payments.wallet_upgrades import UNDECIDED, State
from storage.postgres import Connection
from vendors.errors import Refused
from vendors.payments.paypal_errors import PayPalRefused
from vendors.payments.paypal_refunds import refund_sale
from vendors.payments.paypal_subscriptions import cancel_subscription

log = structlog.get_logger()

_KEY_KEPT = timedelta(days=44)
"""The platform remembers the keys of refunds for 45 days."""
_MADE = frozenset({"COMPLETED", "PENDING"})
_REFUNDED = "REFUNDED"
_PARTLY_REFUNDED = "PARTIALLY_REFUNDED"


@dataclass(frozen=True, slots=True)
class Synced:
    row: WalletSubscription
    read: SubscriptionRead


async def sync(services: Services, app_id: str, row: WalletSubscription, *, channel: Channel) -> Synced:
    """Read a subscription back from the platform and apply it, and the upgrade of which it is the target."""
    found = await read(services, app_id, row)
    old = await _old_to_replace(services, app_id, row, found)
    async with services.database.transaction() as conn:
        posting = await begin_posting(services, conn, app_id, row.uid, channel=channel)
        if old is not None:
            await apply(posting, old.row, old.read)
            await _replace(posting, row, old)
        applied = await apply(posting, row, found)
        if applied.status in RENEWING:
            await endings.end_if_deactivated(conn, app_id, row.uid)
        return Synced(applied, found)


async def _old_to_replace(
    services: Services, app_id: str, row: WalletSubscription, found: SubscriptionRead
) -> Synced | None:
    """Read the subscription that another one replaces as soon as that is paid. `None`: there is nothing to do."""
    if not found.payments:
        return None
    async with services.database.connection() as conn:
        upgrade = await wallet_upgrades.to_new(conn, app_id, new_row=row.row_id)
        if upgrade is None or upgrade.state not in UNDECIDED:
            return None
        old = await wallet_subscriptions.get(conn, app_id, row_id=upgrade.old_row)
    return Synced(old, await read(services, app_id, old))


async def _replace(posting: Posting, row: WalletSubscription, old: Synced) -> None:
    """Let a paid subscription replace the old one, or end it too if another one has replaced that."""
    conn, app_id = posting.conn, posting.app_id
    new = await wallet_subscriptions.get(conn, app_id, row_id=row.row_id)
    upgrades = await wallet_upgrades.of_old(conn, app_id, old_row=old.row.row_id)
    this = next(each for each in upgrades if each.new_row == row.row_id)
    if this.state not in UNDECIDED or new.superseded_at is not None:
        return
    if any(each.state not in UNDECIDED for each in upgrades):
        await _supersede(posting, replace(new, superseded_at=new.created_at))
        return
    for each in upgrades:
        if each.state == "awaiting_approval" and each.new_row != row.row_id:
            await wallet_upgrades.move(conn, app_id, upgrade=each, to="abandoned", now=posting.now)
    await wallet_upgrades.move(conn, app_id, upgrade=this, to="new_active", now=posting.now)
    before = await wallet_subscriptions.get(conn, app_id, row_id=old.row.row_id)
    before = replace(before, superseded_at=new.activated_at or posting.now)
    ended = await post_end(posting, before, key=f"wallet:upgrade:{this.upgrade_id}")
    await _supersede(posting, before)
    await apply(posting, before, old.read)
    if ended is not None:
        await share_groups.move(
            conn, app_id, posting.uid, old=(ended.name, ended.subscription), new=(_asset(new), row.platform_id)
        )


async def _supersede(posting: Posting, row: WalletSubscription) -> None:
    """Store that a subscription is replaced, and the job that ends it at the platform."""
    await wallet_subscriptions.update(posting.conn, posting.app_id, subscription=row)
    await settle_later(posting.conn, posting.app_id, row=row)


async def settle_later(conn: Connection, app_id: str, *, row: WalletSubscription) -> None:
    job = SettleSubscription(app_id=app_id, row_id=row.row_id)
    await enqueue(conn, job, key=f"{job.task}:{row.row_id}")


def _asset(row: WalletSubscription) -> str:
    name: str = row.product["asset"]
    return name


async def settle(services: Services, job: SettleSubscription) -> None:
    """Cancel a replaced subscription at the platform, and then make its refunds.

    Each step is repeated by its own key until the platform has answered.
    """
    async with services.database.connection() as conn:
        row = await wallet_subscriptions.get(conn, job.app_id, row_id=job.row_id)
    if row.superseded_at is None:
        return
    cancelled = await end(services, job.app_id, row, reason="Replaced by another subscription")
    await _move(services, job.app_id, row, after="new_active", to="old_cancelled")
    async with services.database.connection() as conn:
        pending = await wallet_refunds.pending(conn, job.app_id, subscription_row=row.row_id)
    for refund in pending:
        await _refund(services, job.app_id, cancelled, refund)
    await _move(services, job.app_id, row, after="old_cancelled", to="refunded")
    await _move(services, job.app_id, row, after="refunded", to="done")


async def end(services: Services, app_id: str, row: WalletSubscription, *, reason: str) -> Synced:
    """Cancel a subscription, and apply what is read of it then, such as a payment that was made meanwhile."""
    if row.status not in ENDED:
        await client_of(services, app_id, row.config).call(
            lambda paypal: cancel_subscription(paypal, f"{row.row_id}:cancel", row.platform_id, reason=reason)
        )
    found = await read(services, app_id, row)
    async with services.database.transaction() as conn:
        posting = await begin_posting(services, conn, app_id, row.uid, channel="server")
        row = await apply(posting, row, found)
    if row.status not in ENDED:
        raise Refused(PLATFORM, f"still says {row.status} of a subscription that was cancelled", retryable=True)
    return Synced(row, found)


async def _refund(services: Services, app_id: str, cancelled: Synced, refund: PendingRefund) -> None:
    """Make a refund, once. One that the platform refuses for good is kept as failed, for operators."""
    refund_id = None
    if not _is_made(cancelled.read, refund, now=services.clock.now(app_id)):
        client = client_of(services, app_id, cancelled.row.config)
        try:
            made = await client.call(
                lambda paypal: refund_sale(paypal, f"{refund.row_id}:refund", refund.sale_id, refund.money)
            )
        except PayPalRefused as error:
            if not is_final(error):
                raise
            await _set_failed(services, app_id, refund, error.issue)
            return
        if made.status not in _MADE:
            await _set_failed(services, app_id, refund, made.status)
            return
        refund_id = made.id
    async with services.database.transaction() as conn:
        if await wallet_refunds.set_done(conn, app_id, row_id=refund.row_id, refund_id=refund_id):
            purchase = _refunded(cancelled.row, refund, refund_id=refund_id)
            await services.sinks.report(conn, app_id, purchase, now=services.clock.now(app_id))


def _refunded(row: WalletSubscription, refund: PendingRefund, *, refund_id: str | None) -> PurchaseEvent:
    return PurchaseEvent(
        user_id=row.uid,
        kind="refund",
        platform=PLATFORM,
        config=row.config,
        transaction_id=refund.sale_id,
        refund_id=refund_id,
        subscription_id=row.platform_id,
        product_id=row.bp_product_id,
        amount=refund.amount,
        currency=refund.currency,
    )


def _is_made(read: SubscriptionRead, refund: PendingRefund, *, now: datetime) -> bool:
    """Return whether an earlier call has made a refund. A repeat is harmless while its key is known."""
    states = {payment.id: payment.status for payment in read.payments}
    if states.get(refund.sale_id) == _REFUNDED:
        return True
    return now - refund.created_at > _KEY_KEPT and states.get(refund.sale_id) == _PARTLY_REFUNDED


async def _set_failed(services: Services, app_id: str, refund: PendingRefund, problem: str) -> None:
    log.error(
        "wallet.refund_failed", app_id=app_id, sale_id=refund.sale_id, amount=str(refund.money), problem=problem
    )
    async with services.database.transaction() as conn:
        await wallet_refunds.set_failed(conn, app_id, row_id=refund.row_id, problem=problem)
        await mismatches.add(
            conn, app_id,
            platform=PLATFORM, kind="refund_refused", subject=refund.sale_id, detail=f"{refund.money}: {problem}",
            now=services.clock.now(app_id),
        )  # fmt: skip


async def _move(services: Services, app_id: str, row: WalletSubscription, *, after: State, to: State) -> None:
    """Move the upgrade that has replaced a subscription to its next state."""
    async with services.database.transaction() as conn:
        posting = await begin_posting(services, conn, app_id, row.uid, channel="server")
        for upgrade in await wallet_upgrades.of_old(conn, app_id, old_row=row.row_id):
            if upgrade.state == after:
                await wallet_upgrades.move(conn, app_id, upgrade=upgrade, to=to, now=posting.now)


async def complete_creation(services: Services, app_id: str, row: WalletSubscription) -> None:
    """Create a subscription whose first call had no known result, while the platform remembers the key of it."""
    now = services.clock.now(app_id)
    subscription = None
    if wallet_subscription_states.creation_is_remembered(row, now=now):
        subscription = await wallet_subscription_states.create_at_platform(services, app_id, row)
    async with services.database.transaction() as conn:
        posting = await begin_posting(services, conn, app_id, row.uid, channel="reconciliation")
        await apply(posting, row, SubscriptionRead(subscription))
