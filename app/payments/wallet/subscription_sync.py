"""Reads wallet subscriptions back and applies them, and completes upgrades (§3.4).

Once the new subscription of an upgrade is paid, one transaction grants its asset, ends the old asset, and stores
refunds for the unused part of the old payments. A job (`replaced.py`) cancels the old subscription and makes the
refunds. If a subscription has several upgrades, the first one that is paid replaces it. The others are cancelled
too, and refunded in full.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import structlog

from app.payments.posting import Posting, begin_posting
from app.payments.wallet import subscription_states as wallet_subscription_states
from app.payments.wallet.periods import post_end
from app.payments.wallet.plans import product_of_plan
from app.payments.wallet.refunds import REFUNDED
from app.payments.wallet.subscription_states import (
    SubscriptionRead,
    apply_subscription,
    end_replaced_later,
    read_subscription,
)
from app.payments.wallet.wallet import PLATFORM, account_of
from app.services import Services
from storage.assets import share_groups
from storage.assets.entries import Channel
from storage.payments import endings, subscribed
from storage.payments import reversals as stored_reversals
from storage.payments.reversals import Reversal
from storage.payments.wallet import subscriptions as wallet_subscriptions
from storage.payments.wallet import upgrades as wallet_upgrades
from storage.payments.wallet.subscriptions import (
    ACTIVE,
    ENDED_STATUSES,
    RENEWING_STATUSES,
    UNPAID_STATUSES,
    WalletSubscription,
)
from storage.payments.wallet.upgrades import UNDECIDED
from vendors.errors import Refused

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Synced:
    row: WalletSubscription
    read: SubscriptionRead


async def sync_subscription(
    services: Services,
    app_id: str,
    row: WalletSubscription,
    *,
    channel: Channel,
    reported: Sequence[Reversal] = (),
) -> Synced:
    """Read a subscription back and apply it. If it is paid, complete the upgrade to it.

    `reported` are reversals of its payments that were read apart from it.
    """
    found = replace(await read_subscription(services, app_id, row), reported=reported)
    found = replace(found, refunded_at=await _refund_times(services, app_id, row, found))
    old = await _old_to_replace(services, app_id, row, found)
    async with services.database.transaction() as conn:
        posting = await begin_posting(services, conn, app_id, row.uid, channel=channel)
        await _end_second(posting, row, found)
        if old is not None:
            await apply_subscription(posting, old.row, old.read)
            await _replace_old(posting, row, old)
        applied = await apply_subscription(posting, row, found)
        if posting.is_deactivated and applied.status in RENEWING_STATUSES:  # First paid after the deactivation.
            await endings.end_subscriptions_later(conn, app_id, row.uid)
        return Synced(applied, found)


async def _refund_times(
    services: Services, app_id: str, row: WalletSubscription, found: SubscriptionRead
) -> Mapping[str, datetime]:
    """Read when payments were refunded of which no refund was reported. The list of payments does not say it."""
    refunded = [payment for payment in found.payments if payment.status == REFUNDED]
    async with services.database.connection() as conn:
        stored = await stored_reversals.of_payments(
            conn, app_id, platform=PLATFORM, payment_ids=[payment.id for payment in refunded]
        )
    named = {reversal.payment_id for reversal in (*stored, *found.reported)}
    account = account_of(services, app_id, row.config)
    sales = [await account.sale(payment.id) for payment in refunded if payment.id not in named]
    return {sale.id: sale.update_time for sale in sales if sale.update_time is not None}


async def _old_to_replace(
    services: Services, app_id: str, row: WalletSubscription, found: SubscriptionRead
) -> Synced | None:
    """Read back the subscription that a paid one is to replace. `None`: there is nothing to replace."""
    if not found.payments:
        return None
    async with services.database.connection() as conn:
        upgrade = await wallet_upgrades.to_new(conn, app_id, new_row=row.row_id)
        if upgrade is None or upgrade.state not in UNDECIDED:
            return None
        old = await wallet_subscriptions.get(conn, app_id, row_id=upgrade.old_row)
    return Synced(old, await read_subscription(services, app_id, old))


async def _replace_old(posting: Posting, row: WalletSubscription, old: Synced) -> None:
    """Replace the old subscription by a paid one. If another one has replaced it, end the paid one too."""
    conn, app_id = posting.conn, posting.app_id
    new = await wallet_subscriptions.get(conn, app_id, row_id=row.row_id)
    upgrades = await wallet_upgrades.of_old(conn, app_id, old_row=old.row.row_id)
    this = next(upgrade for upgrade in upgrades if upgrade.new_row == row.row_id)
    if this.state not in UNDECIDED or new.superseded_at is not None:
        return
    if any(upgrade.state not in UNDECIDED for upgrade in upgrades):
        await _supersede(posting, replace(new, superseded_at=new.created_at))
        return
    for upgrade in upgrades:
        if upgrade.state == "awaiting_approval" and upgrade.new_row != row.row_id:
            await wallet_upgrades.set_state(conn, app_id, upgrade=upgrade, to="abandoned", now=posting.now)
    await wallet_upgrades.set_state(conn, app_id, upgrade=this, to="new_active", now=posting.now)
    before = await wallet_subscriptions.get(conn, app_id, row_id=old.row.row_id)
    before = replace(before, superseded_at=new.activated_at or posting.now)
    ended = await post_end(posting, before, key=f"wallet:upgrade:{this.upgrade_id}")
    await _supersede(posting, before)
    await apply_subscription(posting, before, old.read)
    if ended is not None:
        await share_groups.move_group(
            conn, app_id, posting.uid, old=(ended.name, ended.subscription), new=(_asset(new), row.platform_id)
        )


async def _end_second(posting: Posting, row: WalletSubscription, found: SubscriptionRead) -> None:
    """End a subscription that turns active, for the first time or again, if the user has another live one.

    Live ones are those to the same product, by wallet or with a card. The one that became active later is ended.
    If it was approved although it was no longer offered, or together with the other one, it is refunded in full.
    If it was suspended, and activated again after the user had subscribed anew, its asset ends, and the part of
    its payments that was unused when it was activated is refunded.
    """
    subscription = found.subscription
    new = await wallet_subscriptions.get(posting.conn, posting.app_id, row_id=row.row_id)
    if subscription is None or subscription.status != ACTIVE or found.number < new.applied_read:
        return
    if new.status == ACTIVE or new.superseded_at is not None:
        return
    name, product = product_of_plan(posting, new, new.latest_plan_id)
    if not await subscribed.has_live(
        posting.conn, posting.app_id, row.uid, bp_product_id=name, product=product, besides=row.row_id
    ):
        return
    if new.status in UNPAID_STATUSES:
        await _supersede(posting, replace(new, superseded_at=new.created_at))
        return
    again_at = min(subscription.status_update_time or posting.now, posting.now)
    await post_end(posting, new, key=f"wallet:second:{row.row_id}")
    await _supersede(posting, replace(new, superseded_at=again_at))


async def _supersede(posting: Posting, row: WalletSubscription) -> None:
    """Store that a subscription is replaced, and store the job that ends it at the platform."""
    await wallet_subscriptions.update(posting.conn, posting.app_id, subscription=row)
    await end_replaced_later(posting.conn, posting.app_id, row=row)


def _asset(row: WalletSubscription) -> str:
    name: str = row.product["asset"]
    return name


async def cancel_subscription(services: Services, app_id: str, row: WalletSubscription, *, reason: str) -> Synced:
    """Cancel a subscription, then read it back and apply it: it may have been paid meanwhile."""
    if row.status not in ENDED_STATUSES:
        account = account_of(services, app_id, row.config)
        await account.cancel_subscription(f"{row.row_id}:cancel", row.platform_id, reason=reason)
    found = await read_subscription(services, app_id, row)
    async with services.database.transaction() as conn:
        posting = await begin_posting(services, conn, app_id, row.uid, channel="server")
        row = await apply_subscription(posting, row, found)
    if row.status not in ENDED_STATUSES:
        raise Refused(PLATFORM, f"still reports {row.status} for a cancelled subscription", retryable=True)
    return Synced(row, found)


async def complete_creation(services: Services, app_id: str, row: WalletSubscription) -> None:
    """Repeat the creation of a subscription, because the result of the first call is unknown.

    The subscription expires if the platform no longer remembers the key of that call.
    """
    now = services.clock.now(app_id)
    subscription = None
    if wallet_subscription_states.creation_is_remembered(row, now=now):
        subscription = await wallet_subscription_states.create_at_platform(services, app_id, row)
    async with services.database.transaction() as conn:
        posting = await begin_posting(services, conn, app_id, row.uid, channel="reconciliation")
        await apply_subscription(posting, row, SubscriptionRead(subscription))
