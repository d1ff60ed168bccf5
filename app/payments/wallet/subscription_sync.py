"""Reads wallet subscriptions back and applies them, with upgrades (§3.4): a paid one replaces the old one.

Then, in one transaction, the asset of the new one is granted, that of the old one ends, and what is unused of its
payments is stored as refunds. A job (`wallet_replaced.py`) cancels the old one and makes the refunds. The first of
several upgrades whose subscription is paid replaces the old one. Any other is cancelled too, and refunded in full.
"""

from dataclasses import dataclass, replace

import structlog

from app.payments.posting import Posting, begin_posting
from app.payments.wallet import subscription_states as wallet_subscription_states
from app.payments.wallet.periods import post_end
from app.payments.wallet.subscription_states import SubscriptionRead, apply_subscription, read_subscription
from app.payments.wallet.wallet import PLATFORM, account_of
from app.services import Services
from storage.assets import share_groups
from storage.assets.entries import Channel
from storage.jobs.jobs import enqueue
from storage.payments import endings, wallet_subscriptions, wallet_upgrades
from storage.payments.wallet_subscriptions import (
    ENDED_STATUSES,
    RENEWING_STATUSES,
    EndReplacedSubscription,
    WalletSubscription,
)
from storage.payments.wallet_upgrades import UNDECIDED
from storage.postgres.database import Connection
from vendors.errors import Refused

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Synced:
    row: WalletSubscription
    read: SubscriptionRead


async def sync_subscription(
    services: Services, app_id: str, row: WalletSubscription, *, channel: Channel
) -> Synced:
    """Read a subscription back from the platform and apply it, and the upgrade of which it is the target."""
    found = await read_subscription(services, app_id, row)
    old = await _old_to_replace(services, app_id, row, found)
    async with services.database.transaction() as conn:
        posting = await begin_posting(services, conn, app_id, row.uid, channel=channel)
        if old is not None:
            await apply_subscription(posting, old.row, old.read)
            await _replace_old(posting, row, old)
        applied = await apply_subscription(posting, row, found)
        if posting.is_deactivated and applied.status in RENEWING_STATUSES:  # Paid first after the deactivation.
            await endings.end_subscriptions_later(conn, app_id, row.uid)
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
    return Synced(old, await read_subscription(services, app_id, old))


async def _replace_old(posting: Posting, row: WalletSubscription, old: Synced) -> None:
    """Let a paid subscription replace the old one, or end it too if another one has replaced that."""
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


async def _supersede(posting: Posting, row: WalletSubscription) -> None:
    """Store that a subscription is replaced, and the job that ends it at the platform."""
    await wallet_subscriptions.update(posting.conn, posting.app_id, subscription=row)
    await end_replaced_later(posting.conn, posting.app_id, row=row)


async def end_replaced_later(conn: Connection, app_id: str, *, row: WalletSubscription) -> None:
    job = EndReplacedSubscription(app_id=app_id, row_id=row.row_id)
    await enqueue(conn, job, key=f"{job.task}:{row.row_id}")


def _asset(row: WalletSubscription) -> str:
    name: str = row.product["asset"]
    return name


async def cancel_subscription(services: Services, app_id: str, row: WalletSubscription, *, reason: str) -> Synced:
    """Cancel a subscription, and apply what is read of it then, such as a payment that was made meanwhile."""
    if row.status not in ENDED_STATUSES:
        account = account_of(services, app_id, row.config)
        await account.cancel_subscription(f"{row.row_id}:cancel", row.platform_id, reason=reason)
    found = await read_subscription(services, app_id, row)
    async with services.database.transaction() as conn:
        posting = await begin_posting(services, conn, app_id, row.uid, channel="server")
        row = await apply_subscription(posting, row, found)
    if row.status not in ENDED_STATUSES:
        raise Refused(PLATFORM, f"still says {row.status} of a subscription that was cancelled", retryable=True)
    return Synced(row, found)


async def complete_creation(services: Services, app_id: str, row: WalletSubscription) -> None:
    """Create a subscription whose first call had no known result, while the platform remembers the key of it."""
    now = services.clock.now(app_id)
    subscription = None
    if wallet_subscription_states.creation_is_remembered(row, now=now):
        subscription = await wallet_subscription_states.create_at_platform(services, app_id, row)
    async with services.database.transaction() as conn:
        posting = await begin_posting(services, conn, app_id, row.uid, channel="reconciliation")
        await apply_subscription(posting, row, SubscriptionRead(subscription))
