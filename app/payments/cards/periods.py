"""Grants the periods of card subscriptions: each paid invoice grants its period exactly once (§2.7).

The state of a subscription decides whether its asset ends with the last paid period, later or earlier
(`renewals.py`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from app.assets.grants import grant_of
from app.payments.cards.platform import CardPlatform, find_in
from app.payments.cards.purchases import purchase_of
from app.payments.cards.renewals import grace_end, next_read
from app.payments.cards.second import with_second_superseded
from app.payments.posting import Posting, begin_posting
from storage.assets import assets
from storage.assets import entries as asset_entries
from storage.assets.entries import AssetOrigin, Channel, Entry, EntryKind
from storage.configs.kinds.cardpay import CARDPAY
from storage.events.outbox import PurchaseKind
from storage.payments import endings, mismatches
from storage.payments.cards import refunds as card_refunds
from storage.payments.cards import sales as card_sales
from storage.payments.cards import subscriptions as card_subscriptions
from storage.payments.cards.sales import CardSale
from storage.payments.cards.subscriptions import CardSubscription
from streams.wire.money import Money
from vendors.payments.stripe.objects import Invoice, Subscription, money_of

ROW_ID = "subscription_row_id"
"""The field of a subscription's metadata that names our row."""


@dataclass(frozen=True, slots=True)
class SubscriptionRead:
    """A subscription as read from the platform. `number` counts the reads of its row."""

    number: int
    subscription: Subscription
    invoices: Sequence[Invoice]
    """The paid invoices, the oldest first."""
    intents: Mapping[str, str | None]
    """The payments of invoices that are not stored yet, by the id of the invoice."""
    tolerance_s: int
    """The `renewal_tolerance_s` of the config."""

    def grace_end(self, paid_ends_at: datetime) -> datetime | None:
        return grace_end(self.subscription, paid_ends_at, tolerance_s=self.tolerance_s)


async def sync_subscription(
    platform: CardPlatform, subscription_id: str, *, channel: Channel
) -> SubscriptionRead | None:
    """Read a subscription from the platform and apply it. Return `None` if it is not one of the app's."""
    row = await _row_of(platform, subscription_id)
    if row is None:
        return None
    read = await _read_subscription(platform, row, subscription_id)
    async with platform.services.database.transaction() as conn:
        posting = await begin_posting(platform.services, conn, row.app_id, row.uid, channel=channel)
        row = await card_subscriptions.lock(conn, row.row_id)
        row = await with_second_superseded(posting, row, read.subscription, number=read.number)
        await _apply_read(posting, row, read)
        if posting.is_deactivated and read.subscription.renews:  # Its first payment may come later.
            await endings.end_subscriptions_later(conn, row.app_id, row.uid)
    return read


async def find_subscription(platform: CardPlatform, row: CardSubscription) -> Subscription | None:
    """Find the subscription that an earlier call has created for a row in the platform's list."""
    if row.customer_id is None:  # It is stored before that call.
        return None
    return await find_in(platform.stripe.subscriptions, row.customer_id, field=ROW_ID, value=row.row_id)


async def _row_of(platform: CardPlatform, subscription_id: str) -> CardSubscription | None:
    """Return the row of a subscription. If the row has no id of the platform yet, the metadata names it."""
    database, app_id, config = platform.services.database, platform.app_id, platform.name
    async with database.connection() as conn:
        row = await card_subscriptions.find(conn, app_id, config=config, subscription_id=subscription_id)
    if row is not None:
        return row
    subscription = await platform.stripe.subscription(subscription_id)
    row_id = subscription.metadata.get(ROW_ID, "")
    async with database.connection() as conn:
        return await card_subscriptions.link(
            conn, app_id, config=config, row_id=row_id, subscription_id=subscription_id
        )


async def _read_subscription(
    platform: CardPlatform, row: CardSubscription, subscription_id: str
) -> SubscriptionRead:
    async with platform.services.database.connection() as conn:
        number = await card_subscriptions.begin_read(conn, row.row_id)
    subscription = await platform.stripe.subscription(subscription_id)
    invoices = (await platform.stripe.paid_invoices(subscription_id))[::-1]
    async with platform.services.database.connection() as conn:
        ids = [invoice.id for invoice in invoices]
        known = await card_sales.known(conn, row.app_id, config=row.config, sale_ids=ids)
    intents = {id_: await _intent_of(platform, id_) for id_ in ids if id_ not in known}
    return SubscriptionRead(number, subscription, invoices, intents, platform.config.renewal_tolerance_s)


async def _intent_of(platform: CardPlatform, invoice_id: str) -> str | None:
    payments = await platform.stripe.payments_of_invoice(invoice_id)
    return next((payment.payment.payment_intent for payment in payments if payment.payment.payment_intent), None)


async def _apply_read(posting: Posting, row: CardSubscription, read: SubscriptionRead) -> None:
    """Grant the periods that are paid, and store the state unless a later read is stored. The row is locked."""
    is_latest = read.number > row.applied_read
    for invoice in read.invoices:
        if invoice.id in read.intents:
            is_current = is_latest and invoice is read.invoices[-1]
            await _apply_invoice(posting, row, invoice, read, is_current=is_current)
    if not is_latest:
        return
    grants = await asset_entries.grants_of(posting.conn, row.app_id, row.uid, subscription=read.subscription.id)
    paid_ends_at = grants[-1].ends_at if grants else None
    canceled_at, cancel_at = _canceled_at(posting, row, read.subscription), read.subscription.cancel_at
    if paid_ends_at is not None:
        await _post_state(posting, row, read, canceled_at=canceled_at, ends_at=read.grace_end(paid_ends_at))
    end = read.subscription.period_end
    await card_subscriptions.set_read(
        posting.conn,
        row.row_id,
        status=read.subscription.status,
        period_ends_at=None if end is None else datetime.fromtimestamp(end, UTC),
        canceled_at=canceled_at,
        cancel_at=None if cancel_at is None else datetime.fromtimestamp(cancel_at, UTC),
        superseded_at=row.superseded_at,
        check_at=next_read(paid_ends_at, now=posting.now),
        read=read.number,
        now=posting.now,
    )


def _canceled_at(posting: Posting, row: CardSubscription, subscription: Subscription) -> datetime | None:
    """Return when a subscription was cancelled, by the platform's clock if the platform says when."""
    if not subscription.is_cancelled:
        return None
    at = subscription.canceled_at
    return (row.canceled_at or posting.now) if at is None else datetime.fromtimestamp(at, UTC)


async def _apply_invoice(
    posting: Posting, row: CardSubscription, invoice: Invoice, read: SubscriptionRead, *, is_current: bool
) -> None:
    """Grant the period of a paid invoice, and report the payment.

    It is refunded if the account is closed or another subscription counts; the refund takes the grant back.
    `is_current`: the subscription's state decides when this period ends.
    """
    entry = _grant(posting, row, invoice, read)
    if entry is None:
        return
    if is_current and entry.ends_at is not None:
        entry = replace(entry, grace_ends_at=read.grace_end(entry.ends_at))
    name, intent_id = read.subscription.id, read.intents[invoice.id]
    sale = CardSale(row.app_id, row.config, invoice.id, row.uid, intent_id, name, row.product_id)
    await card_sales.add(posting.conn, sale)
    if not await posting.post(entry):
        return
    paid, price = money_of(invoice.amount_paid, invoice.currency), row.sold.price
    if price is not None and entry.origin != "trial":
        await posting.compare_paid(CARDPAY.name, sale.sale_id, paid=paid, expected=price.all)
    if paid.amount:
        kind: PurchaseKind = "renewal" if entry.origin == "renewal" else "charge"
        await posting.report(purchase_of(sale, kind, paid))
        if posting.is_deactivated or row.superseded_at is not None:
            await _refund(posting, sale, paid)


async def _refund(posting: Posting, sale: CardSale, paid: Money) -> None:
    """Store the refund of a paid invoice, or tell operators of it if the platform does not name its payment."""
    if sale.intent_id is not None:
        await card_refunds.add(
            posting.conn, sale.app_id,
            config=sale.config, sale_id=sale.sale_id, intent_id=sale.intent_id, money=paid, now=posting.now,
        )  # fmt: skip
        return
    await mismatches.add(
        posting.conn, sale.app_id,
        platform=CARDPAY.name, kind="refund_refused", subject=sale.sale_id,
        detail=f"{paid}: the platform names no payment of the invoice", now=posting.now,
    )  # fmt: skip


def _grant(posting: Posting, row: CardSubscription, invoice: Invoice, read: SubscriptionRead) -> Entry | None:
    product, period = row.sold, invoice.period
    if period is None:
        return None
    start, end = (datetime.fromtimestamp(at, UTC) for at in (period.start, period.end))
    entry = grant_of(
        product,
        row.product_id,
        key=card_sales.key_of(invoice.id),
        receipt_id=invoice.id,
        origin=_origin(row, invoice),
        channel=posting.channel,
        start=start,
        subscription=read.subscription.id,
        platform=CARDPAY.name,
        product_id=row.price_id,
        renews=not read.subscription.is_cancelled,
    )
    return replace(entry, ends_at=end)


def _origin(row: CardSubscription, invoice: Invoice) -> AssetOrigin:
    if invoice.billing_reason != "subscription_create":
        return "renewal"
    return "trial" if row.trial_ends_at is not None and invoice.amount_paid == 0 else "purchase"


async def _post_state(
    posting: Posting,
    row: CardSubscription,
    read: SubscriptionRead,
    *,
    canceled_at: datetime | None,
    ends_at: datetime | None,
) -> None:
    """Post that a subscription was cancelled or resumed, or that its asset ends at another time.

    `ends_at`: the end that counts instead of that of the paid period.
    """
    product, name = row.sold, read.subscription.id
    asset = await assets.find(posting.conn, row.app_id, row.uid, name=product.asset, subscription=name)
    if asset is None:
        return
    kind: EntryKind = "extend"
    if asset.canceled_at != canceled_at:
        kind = "resume" if canceled_at is None else "cancel"
    elif asset.grace_ends_at == ends_at or asset.ended_at is not None:
        return
    # Only a cancellation and its end are events that a webhook reports.
    is_event = (asset.canceled_at is None) is not (canceled_at is None)
    entry = Entry(
        f"{kind}:{name}:{read.number}", kind, product.asset, product.type, name,
        ends_at=ends_at, happened_at=canceled_at, platform=CARDPAY.name,
        channel=posting.channel if is_event else "server",
    )  # fmt: skip
    await posting.post(entry)
