"""Creates subscriptions at the wallet platform, reads them back, and grants what they have paid for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from app.payments.posting import Posting
from app.payments.wallet.periods import key_of, last_paid, post_payments, post_reversals, post_state, refund_unused
from app.payments.wallet.plans import with_changed_plan
from app.payments.wallet.renewals import LAG, Renewal, next_read, renewal_of
from app.payments.wallet.reversals import DAY, READ_FOR
from app.payments.wallet.wallet import account_of, is_final, none_if_gone, soon, wallet_config
from app.services import Services
from storage.assets import entries as asset_entries
from storage.jobs.jobs import enqueue
from storage.payments.reversals import Reversal
from storage.payments.wallet import subscriptions as wallet_subscriptions
from storage.payments.wallet import upgrades as wallet_upgrades
from storage.payments.wallet.subscriptions import (
    ACTIVE,
    ENDED_STATUSES,
    EXPIRED,
    PENDING,
    SUSPENDED,
    UNPAID_STATUSES,
    EndReplacedSubscription,
    WalletSubscription,
)
from storage.postgres.database import Connection
from vendors.payments.paypal.errors import PayPalRefused
from vendors.payments.paypal.subscriptions import Subscription, Transaction

_PAID = frozenset({"COMPLETED", "PARTIALLY_REFUNDED", "REFUNDED"})
"""The states of payments that were made."""
UNAPPROVED_FOR = timedelta(hours=72)
"""How long a subscription waits for its approval, and how long the platform remembers the key of its creation."""


@dataclass(frozen=True, slots=True)
class SubscriptionRead:
    """A subscription as read from the platform."""

    subscription: Subscription | None
    """`None`: the platform does not have it, because it was not approved in time."""
    transactions: Sequence[Transaction] = ()
    """All payments, oldest first, also those that have failed."""
    number: int = 0
    """Counts the reads of a row. 0: the answer to its creation."""
    reported: Sequence[Reversal] = ()
    """Reversals of its payments that were read apart from it."""
    refunded_at: Mapping[str, datetime] = field(default_factory=dict)
    """When payments were refunded, if no reversal says so, by their ids."""

    @property
    def payments(self) -> list[Transaction]:
        """The payments that were made."""
        return [paid for paid in self.transactions if paid.status in _PAID and paid.amount.amount > 0]


async def create_at_platform(services: Services, app_id: str, row: WalletSubscription) -> Subscription:
    """Create a stored subscription at the platform, or return the one that an earlier call has created.

    If the platform refuses permanently, the row is deleted.
    """
    brand_name = wallet_config(services, app_id, row.config).brand_name
    try:
        return await account_of(services, app_id, row.config).create_subscription(
            f"{row.row_id}:create",
            plan_id=row.plan_id,
            custom_id=row.uid,
            return_url=row.return_url,
            cancel_url=row.cancel_url,
            brand_name=brand_name,
            country=row.country,
        )
    except PayPalRefused as error:
        if is_final(error):
            async with services.database.transaction() as conn:
                await wallet_subscriptions.remove(conn, app_id, row_id=row.row_id)
        raise


async def read_subscription(services: Services, app_id: str, row: WalletSubscription) -> SubscriptionRead:
    """Read a subscription and its payments back from the platform."""
    account = account_of(services, app_id, row.config)
    async with services.database.connection() as conn:
        number = await wallet_subscriptions.begin_read(conn, app_id, row_id=row.row_id)
    subscription = await none_if_gone(account.subscription(row.platform_id))
    if subscription is None or subscription.status in UNPAID_STATUSES:
        return SubscriptionRead(subscription, number=number)
    start, end = row.created_at - DAY, services.clock.now(app_id) + DAY
    transactions = await account.transactions(row.platform_id, start=start, end=end)
    return SubscriptionRead(subscription, transactions, number)


async def apply_subscription(
    posting: Posting, row: WalletSubscription, read: SubscriptionRead
) -> WalletSubscription:
    """Post the entries that follow from a subscription of the platform, and store its state.

    Payments of a replaced subscription are not granted: their unused part is refunded. The user is locked. If a
    later read is applied already, only payments are granted.
    """
    row = await wallet_subscriptions.get(posting.conn, posting.app_id, row_id=row.row_id)
    subscription = read.subscription
    if read.number < row.applied_read:
        await _post_payments(posting, row, read, renewal=None)
        return row
    applied = replace(
        row,
        applied_read=read.number,
        subscription_id=row.subscription_id or (None if subscription is None else subscription.id),
        status=status_of(row, read, now=posting.now),
    )
    if subscription is not None and subscription.status == ACTIVE:
        applied = replace(applied, activated_at=row.activated_at or posting.now)
    if subscription is not None:
        applied = await with_changed_plan(posting, applied, subscription, read.payments)
    if posting.is_deactivated and applied.superseded_at is None:
        applied = await _refuse_payments(posting, applied, read)
    if subscription is not None and applied.subscription_id is not None and applied.status not in UNPAID_STATUSES:
        config = wallet_config(posting.services, posting.app_id, row.config)
        renews = applied.superseded_at is None
        renewal = renewal_of(config, subscription, read.transactions) if renews else None
        await _post_payments(posting, applied, read, renewal=renewal)
        await post_state(posting, applied, subscription, before=row.status, renewal=renewal)
    check_at = await _check_at(posting, applied, read)
    if await wallet_upgrades.is_unfinished(posting.conn, posting.app_id, old_row=row.row_id):
        check_at = soon(posting.now)
    applied = replace(applied, check_at=check_at)
    await wallet_subscriptions.update(posting.conn, posting.app_id, subscription=applied)
    return applied


async def _post_payments(
    posting: Posting, row: WalletSubscription, read: SubscriptionRead, *, renewal: Renewal | None
) -> None:
    if read.subscription is None or row.status in UNPAID_STATUSES:
        return
    if row.superseded_at is None:
        await post_payments(posting, row, read.subscription, read.payments, renewal=renewal)
        await post_reversals(posting, row, read)
    else:
        await post_reversals(posting, row, read)
        await refund_unused(posting, row, read.payments, at=row.superseded_at)


async def _refuse_payments(posting: Posting, row: WalletSubscription, read: SubscriptionRead) -> WalletSubscription:
    """Refund payments that have arrived after the account was closed, like those of a replaced subscription."""
    if row.subscription_id is None or not read.payments:
        return row
    grants = await asset_entries.grants_of(posting.conn, posting.app_id, row.uid, subscription=row.subscription_id)
    granted = {entry.key for entry in grants}
    late = next((payment for payment in read.payments if key_of(payment) not in granted), None)
    if late is None:
        return row
    await end_replaced_later(posting.conn, posting.app_id, row=row)
    return replace(row, superseded_at=late.time)


async def end_replaced_later(conn: Connection, app_id: str, *, row: WalletSubscription) -> None:
    """Store the job that ends a replaced subscription at the platform. `conn` is in a transaction."""
    job = EndReplacedSubscription(app_id=app_id, row_id=row.row_id)
    await enqueue(conn, job, key=f"{job.task}:{row.row_id}")


def status_of(row: WalletSubscription, read: SubscriptionRead, *, now: datetime) -> str:
    """Return the state: that of the platform, but `EXPIRED` if it is not approved within 72 hours."""
    if read.subscription is None:
        return EXPIRED if row.status in UNPAID_STATUSES else row.status
    status = read.subscription.status
    return EXPIRED if status == PENDING and now - row.created_at >= UNAPPROVED_FOR else status


async def _check_at(posting: Posting, row: WalletSubscription, read: SubscriptionRead) -> datetime | None:
    """Return when to read a subscription back: at its renewal, and every minute while a change is expected."""
    now = posting.now
    if row.status in UNPAID_STATUSES:
        return soon(now)
    if row.status in ENDED_STATUSES:
        ended_at = None if read.subscription is None else read.subscription.status_update_time
        if ended_at is not None and now < ended_at + LAG:
            return soon(now)
        return now + DAY if any(now < payment.time + READ_FOR for payment in read.payments) else None
    if row.status == SUSPENDED:
        return now + DAY
    if read.subscription is None:
        return soon(now)
    paid = await last_paid(posting.conn, posting.app_id, row)
    paid_ends_at = None if paid is None else paid.ends_at
    return next_read(read.subscription, read.transactions, paid_ends_at=paid_ends_at, now=now)


def creation_is_remembered(row: WalletSubscription, *, now: datetime) -> bool:
    """Return whether the platform still remembers the key with which a subscription is created."""
    return now - row.created_at < UNAPPROVED_FOR
