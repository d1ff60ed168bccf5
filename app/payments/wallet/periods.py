"""Posts the entries of a wallet subscription: for its payments, its refunds and its state."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Protocol

from app.assets.grants import grant_of
from app.payments.posting import Posting
from app.payments.reversals import Payment, apply_reversals, store_reversals
from app.payments.wallet.plans import product_of_plan
from app.payments.wallet.proration import refund_due
from app.payments.wallet.refunds import refunded_of
from app.payments.wallet.renewals import Renewal
from app.payments.wallet.wallet import PLATFORM, wallet_config
from storage.assets import assets
from storage.assets import entries as asset_entries
from storage.assets.entries import AssetOrigin, Entry, EntryKind
from storage.events.outbox import PurchaseEvent, PurchaseKind
from storage.payments import reversals as stored_reversals
from storage.payments import subscribed
from storage.payments.reversals import Reversal
from storage.payments.wallet import refunds as wallet_refunds
from storage.payments.wallet import upgrades as wallet_upgrades
from storage.payments.wallet.subscriptions import ENDED_STATUSES, SUSPENDED, WalletSubscription
from storage.postgres.database import Connection
from streams.wire.money import Money
from vendors.payments.paypal.subscriptions import Subscription, Transaction

_REFUNDED = "REFUNDED"


@dataclass(frozen=True, slots=True)
class Paid:
    """The grant of the last payment of a subscription."""

    entry: Entry
    ends_at: datetime


class ReversalsRead(Protocol):
    """What was read of the reversals of a subscription's payments."""

    @property
    def payments(self) -> Sequence[Transaction]:
        """The payments that were made."""

    @property
    def reported(self) -> Sequence[Reversal]:
        """Reversals that were read apart from the subscription."""

    @property
    def refunded_at(self) -> Mapping[str, datetime]:
        """When payments were refunded, if no reversal says so, by their ids."""


async def post_payments(
    posting: Posting,
    row: WalletSubscription,
    read: Subscription,
    payments: Sequence[Transaction],
    *,
    renewal: Renewal | None,
) -> None:
    """Post a grant for each payment, oldest first.

    `renewal`: the next payment, if the platform renews the subscription.
    """
    if not payments:
        await _post_trial(posting, row, read, renewal=renewal)
    is_upgrade = await wallet_upgrades.to_new(posting.conn, posting.app_id, new_row=row.row_id) is not None
    granted = {entry.key: entry for entry in await _grants(posting.conn, posting.app_id, row)}
    for number, payment in enumerate(payments):
        entry = granted.get(key_of(payment))
        if entry is None:
            first: AssetOrigin = "upgrade" if is_upgrade else "purchase"
            entry = _grant(posting, row, payment, origin="renewal" if number else first)
            if payment is payments[-1]:
                entry = replace(entry, grace_ends_at=_renewed_end(renewal, entry))
            if await posting.post(entry):
                await posting.report(_purchase(row, payment, _kind_of(entry)))
                await _compare_paid(posting, row, payment, plan_id=entry.product_id)


async def post_reversals(posting: Posting, row: WalletSubscription, read: ReversalsRead) -> None:
    """Take back the grants of payments of which nothing is left, and restore those that were won back.

    Of a replaced subscription, reversals are only stored: they count as refunded.
    """
    granted = {entry.key: entry for entry in await _grants(posting.conn, posting.app_id, row)}
    for payment in await _reversible(posting, read):
        reversed_ = Payment(
            PLATFORM, payment.id, payment.amount, read.reported,
            is_refunded=payment.status == _REFUNDED and row.superseded_at is None,
            refunded_at=read.refunded_at.get(payment.id), order_id=row.platform_id,
        )  # fmt: skip
        if row.superseded_at is not None:
            await store_reversals(posting, reversed_)
            continue
        change = await apply_reversals(posting, reversed_, granted.get(key_of(payment)), name=payment.id)
        if change is not None:
            purchase = _purchase(row, payment, change.kind)
            await posting.report(purchase.model_copy(update={"amount": change.money.amount}))


async def _reversible(posting: Posting, read: ReversalsRead) -> list[Transaction]:
    """Return the payments that have reversals, or are refunded."""
    ids = [payment.id for payment in read.payments]
    stored = await stored_reversals.of_payments(posting.conn, posting.app_id, platform=PLATFORM, payment_ids=ids)
    named = {reversal.payment_id for reversal in (*stored, *read.reported)}
    return [payment for payment in read.payments if payment.id in named or payment.status == _REFUNDED]


async def refund_unused(
    posting: Posting, row: WalletSubscription, payments: Sequence[Transaction], *, at: datetime
) -> None:
    """Store a refund of the part of each payment that is unused at `at`, in time and in units.

    Later payments are refunded in full. A payment with a renewal at `at` or before is used up, because the platform
    may renew up to a day before the period ends.
    """
    granted = {entry.key: entry for entry in await _grants(posting.conn, posting.app_id, row)}
    for number, payment in enumerate(payments):
        if any(renewal.time <= at for renewal in payments[number + 1 :]):
            continue
        origin: AssetOrigin = "renewal" if number else "purchase"
        entry = granted.get(key_of(payment)) or _grant(posting, row, payment, origin=origin)
        assert entry.starts_at is not None, "a grant of a subscription has a period"
        assert entry.ends_at is not None, "a grant of a subscription has a period"
        amount = payment.amount
        refunded = await refunded_of(posting.conn, posting.app_id, payment.id, amount)
        used = await asset_entries.used_units(posting.conn, posting.app_id, row.uid, grant=entry)
        due = refund_due(
            amount, refunded=refunded, start=entry.starts_at, end=entry.ends_at, at=at,
            granted=entry.quantity, used=used,
        )  # fmt: skip
        if due.amount > 0 and payment.status != _REFUNDED:
            is_new = await wallet_refunds.add(
                posting.conn, posting.app_id,
                sale_id=payment.id, subscription_row=row.row_id, amount=due, now=posting.now,
            )  # fmt: skip
            if is_new and entry.key not in granted:
                await posting.report(_purchase(row, payment, _kind_of(entry)))


async def _compare_paid(posting: Posting, row: WalletSubscription, payment: Transaction, *, plan_id: str) -> None:
    """Compare a payment with the price of its product, if it has one."""
    product = product_of_plan(posting, row, plan_id)[1]
    if product.price is None:
        return
    price = product.price.in_country(row.country or None)
    trial = [] if product.trial is None else [Money(product.trial.amount, price.currency)]
    await posting.compare_paid(PLATFORM, payment.id, paid=payment.amount, expected=[price, *trial])


def _kind_of(grant: Entry) -> PurchaseKind:
    return "renewal" if grant.origin == "renewal" else "charge"


def _purchase(row: WalletSubscription, payment: Transaction, kind: PurchaseKind) -> PurchaseEvent:
    return PurchaseEvent(
        user_id=row.uid,
        kind=kind,
        platform=PLATFORM,
        config=row.config,
        transaction_id=payment.id,
        subscription_id=row.platform_id,
        product_id=row.bp_product_id,
        amount=payment.amount.amount,
        currency=payment.amount.currency,
    )


async def post_state(
    posting: Posting, row: WalletSubscription, read: Subscription, *, before: str, renewal: Renewal | None
) -> None:
    """Post the entry that follows from the state of a subscription.

    `before` is the state that was stored. `renewal`: see `post_payments`.
    """
    paid = await last_paid(posting.conn, posting.app_id, row)
    if paid is None:
        return
    await _end_former(posting, row, paid.entry)
    if read.status in ENDED_STATUSES:
        change = _change(posting, paid.entry, f"wallet:cancel:{row.subscription_id}", "cancel")
        await posting.post(replace(change, happened_at=read.status_update_time))
        return
    kind: EntryKind = "resume" if before == SUSPENDED else "extend"
    ends_at = None if renewal is None else renewal.end_after(paid.ends_at)
    if read.status == SUSPENDED:
        grace_s = wallet_config(posting.services, posting.app_id, row.config).grace_s
        kind, ends_at = "suspend", paid.ends_at + timedelta(seconds=grace_s) if grace_s else None
    await _post_grace(posting, row, paid.entry, kind=kind, ends_at=ends_at)


async def _end_former(posting: Posting, row: WalletSubscription, last: Entry) -> None:
    """Let the assets of former plans end with their paid periods: the payments are for another asset now."""
    grants = {entry.name: entry for entry in await _grants(posting.conn, posting.app_id, row)}
    for entry in [entry for name, entry in grants.items() if name != last.name]:
        asset = await assets.find(
            posting.conn, posting.app_id, posting.uid, name=entry.name, subscription=entry.subscription
        )
        if asset is not None and asset.canceled_at is None:
            change = _change(posting, entry, f"wallet:plan:{entry.name}:{last.key}", "cancel")
            # No webhook reports it.
            await posting.post(replace(change, happened_at=last.starts_at, channel="server"))


async def last_paid(conn: Connection, app_id: str, row: WalletSubscription) -> Paid | None:
    grants = await _grants(conn, app_id, row)
    if not grants or grants[-1].ends_at is None:
        return None
    return Paid(grants[-1], grants[-1].ends_at)


async def post_end(posting: Posting, row: WalletSubscription, *, key: str) -> Entry | None:
    """End the asset of a subscription now, if it is valid. Return its last grant."""
    paid = await last_paid(posting.conn, posting.app_id, row)
    if paid is None:
        return None
    asset = await assets.find(
        posting.conn, posting.app_id, posting.uid, name=paid.entry.name, subscription=paid.entry.subscription
    )
    if asset is not None and asset.is_valid(posting.now):
        await posting.post(_change(posting, paid.entry, key, "end"))
    return paid.entry


async def _post_trial(
    posting: Posting, row: WalletSubscription, read: Subscription, *, renewal: Renewal | None
) -> None:
    """Post the grant of a free trial, which has no payment, unless the user has had a trial of the asset.

    Two subscriptions with a trial may wait for their approval at the same time.
    """
    product = product_of_plan(posting, row, row.plan_id)[1]
    is_paid = read.last_payment is not None  # The payment is not listed yet.
    if (
        product.trial is None
        or product.trial.amount
        or is_paid
        or (read.plan is not None and not read.plan.has_trial)
    ):
        return
    if await subscribed.had_trial(
        posting.conn, posting.app_id, row.uid, asset=product.asset, besides=row.platform_id
    ):
        return
    key = f"wallet:trial:{row.subscription_id}"
    start = read.start_time or row.activated_at or posting.now
    entry = _entry(posting, row, key=key, plan_id=row.plan_id, origin="trial", start=start)
    await posting.post(replace(entry, grace_ends_at=_renewed_end(renewal, entry)))


async def _post_grace(
    posting: Posting, row: WalletSubscription, entry: Entry, *, kind: EntryKind, ends_at: datetime | None
) -> None:
    """Let the asset end at `ends_at` instead of the end of its paid period, or with that period (`None`)."""
    asset = await assets.find(
        posting.conn, posting.app_id, posting.uid, name=entry.name, subscription=entry.subscription
    )
    if asset is None or asset.ended_at is not None:
        return
    if asset.canceled_at is not None:  # The plan was changed to another asset, and back.
        kind = "resume"
    elif asset.grace_ends_at == ends_at:
        return
    # A state has no id. The number of its read distinguishes the key from that of an earlier change.
    key = f"wallet:{kind}:{row.subscription_id}:{row.applied_read}"
    change = replace(_change(posting, entry, key, kind), ends_at=ends_at)
    # No webhook reports that the next payment has moved.
    await posting.post(replace(change, channel="server") if kind == "extend" else change)


def _renewed_end(renewal: Renewal | None, grant: Entry) -> datetime | None:
    return None if renewal is None or grant.ends_at is None else renewal.end_after(grant.ends_at)


async def _grants(conn: Connection, app_id: str, row: WalletSubscription) -> list[Entry]:
    return await asset_entries.grants_of(conn, app_id, row.uid, subscription=row.platform_id)


def _grant(posting: Posting, row: WalletSubscription, payment: Transaction, *, origin: AssetOrigin) -> Entry:
    plan_id = row.plan_at(payment.time)
    product = product_of_plan(posting, row, plan_id)[1]
    trial = product.trial
    if origin != "renewal" and trial is not None and trial.amount and payment.amount.amount == trial.amount:
        origin = "trial"
    return _entry(posting, row, key=key_of(payment), plan_id=plan_id, origin=origin, start=payment.time)


def _entry(
    posting: Posting, row: WalletSubscription, *, key: str, plan_id: str, origin: AssetOrigin, start: datetime
) -> Entry:
    bp_product_id, product = product_of_plan(posting, row, plan_id)
    return grant_of(
        product,
        bp_product_id,
        key=key,
        receipt_id=row.platform_id,
        origin=origin,
        channel=posting.channel,
        start=start,
        subscription=row.platform_id,
        platform=PLATFORM,
        product_id=plan_id,
        renews=True,
    )


def _change(posting: Posting, granted: Entry, key: str, kind: EntryKind) -> Entry:
    """Return an entry that changes the asset of a subscription."""
    return Entry(
        key,
        kind,
        granted.name,
        granted.type,
        granted.subscription,
        platform=granted.platform,
        bp_product_id=granted.bp_product_id,
        receipt_id=granted.receipt_id,
        channel=posting.channel,
    )


def key_of(payment: Transaction) -> str:
    """Return the key of the grant of a payment."""
    return f"wallet:sale:{payment.id}"
