"""Grants the periods of card subscriptions: each paid invoice grants its period exactly once (§2.7)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from app.assets.grants import grant_of
from app.payments.cards.platform import CardPlatform, find_in
from app.payments.cards.purchases import purchase_of
from app.payments.posting import Posting, begin_posting
from storage.assets import assets
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
FINAL_STATUSES = frozenset({"canceled", "incomplete_expired"})
"""The platform's statuses of subscriptions that have ended."""


@dataclass(frozen=True, slots=True)
class SubscriptionRead:
    """A subscription as read from the platform. `number` counts the reads of its row."""

    number: int
    subscription: Subscription
    invoices: Sequence[Invoice]
    """The paid invoices, the oldest first."""
    intents: Mapping[str, str | None]
    """The payments of invoices that are not stored yet, by the id of the invoice."""

    @property
    def is_cancelled(self) -> bool:
        return self.subscription.cancel_at_period_end or self.subscription.status in FINAL_STATUSES


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
        await _apply_read(posting, row, read)
        if posting.is_deactivated and not read.is_cancelled:  # Its first payment may come later.
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
    return SubscriptionRead(number, subscription, invoices, intents)


async def _intent_of(platform: CardPlatform, invoice_id: str) -> str | None:
    payments = await platform.stripe.payments_of_invoice(invoice_id)
    return next((payment.payment.payment_intent for payment in payments if payment.payment.payment_intent), None)


async def _apply_read(posting: Posting, row: CardSubscription, read: SubscriptionRead) -> None:
    """Grant the periods that are paid, and store the state unless a later read is stored. The row is locked."""
    for invoice in read.invoices:
        if invoice.id in read.intents:
            await _apply_invoice(posting, row, invoice, read)
    if read.number <= row.applied_read:
        return
    canceled_at = (row.canceled_at or posting.now) if read.is_cancelled else None
    if (canceled_at is None) is not (row.canceled_at is None):
        await _post_change(posting, row, read, "resume" if canceled_at is None else "cancel")
    end = read.subscription.period_end
    await card_subscriptions.set_read(
        posting.conn,
        row.row_id,
        status=read.subscription.status,
        period_ends_at=None if end is None else datetime.fromtimestamp(end, UTC),
        canceled_at=canceled_at,
        read=read.number,
        now=posting.now,
    )


async def _apply_invoice(posting: Posting, row: CardSubscription, invoice: Invoice, read: SubscriptionRead) -> None:
    """Grant the period of a paid invoice, and report the payment."""
    entry = _grant(posting, row, invoice, read)
    if entry is None:
        return
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
        if posting.is_deactivated:  # It was paid after the account was closed.
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
        renews=not read.is_cancelled,
    )
    return replace(entry, ends_at=end)


def _origin(row: CardSubscription, invoice: Invoice) -> AssetOrigin:
    if invoice.billing_reason != "subscription_create":
        return "renewal"
    return "trial" if row.trial_ends_at is not None and invoice.amount_paid == 0 else "purchase"


async def _post_change(posting: Posting, row: CardSubscription, read: SubscriptionRead, kind: EntryKind) -> None:
    """Post that a subscription was cancelled or resumed, if it has granted something."""
    product, name = row.sold, read.subscription.id
    if await assets.find(posting.conn, row.app_id, row.uid, name=product.asset, subscription=name) is None:
        return
    key = f"{kind}:{name}:{read.number}"
    entry = Entry(key, kind, product.asset, product.type, name, platform=CARDPAY.name, channel=posting.channel)
    await posting.post(entry)
