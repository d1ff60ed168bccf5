"""Refunds and disputes of card payments, which reverse the grant of a sale (§2.7)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from app.payments.cards.grants import sync_intent
from app.payments.cards.periods import sync_subscription
from app.payments.cards.platform import CardPlatform
from app.payments.cards.purchases import purchase_of
from app.payments.posting import Posting, begin_posting
from storage.assets import entries as asset_entries
from storage.assets.entries import Channel
from storage.payments.cards import sales as card_sales
from storage.payments.cards.sales import CardSale
from streams.wire.money import Money
from vendors.payments.stripe.objects import Dispute, Refund, money_of

_TAKEN = frozenset({"needs_response", "under_review", "lost"})
"""Statuses of disputes in which the platform has taken the money back."""
_FAILED = frozenset({"failed", "canceled"})


@dataclass(frozen=True, slots=True)
class Reversals:
    """The refunds and disputes of a payment. `amount` is in the platform's unit of `currency`."""

    amount: int
    currency: str
    refunds: Sequence[Refund]
    disputes: Sequence[Dispute]

    @property
    def money(self) -> Money:
        return money_of(self.amount, self.currency)

    @property
    def taken_by(self) -> str | None:
        """The dispute that has reversed the payment, or the refund that has completed its full refund.

        A partial refund reverses nothing: the user keeps the grant.
        """
        if taken := [dispute.id for dispute in self.disputes if dispute.status in _TAKEN]:
            return min(taken)
        refunded = 0
        for refund in sorted(self.refunds, key=lambda refund: (refund.created, refund.id)):
            refunded += refund.amount if refund.status == "succeeded" else 0
            if refunded >= self.amount:
                return refund.id
        return None

    def gives_back(self, reversed_by: str) -> bool:
        """Return whether the reversal was undone: the dispute was won, or the refund has failed."""
        return any(dispute.id == reversed_by and dispute.status == "won" for dispute in self.disputes) or any(
            refund.id == reversed_by and refund.status in _FAILED for refund in self.refunds
        )


async def sync_reversals(platform: CardPlatform, intent_id: str, *, channel: Channel) -> None:
    """Read the refunds and disputes of a payment from the platform and apply them.

    If the sale and its grant are missing, they are stored first.
    """
    sale = await _sale_of(platform, intent_id) or await _sync_sale(platform, intent_id, channel=channel)
    if sale is None:
        return
    intent = await platform.stripe.payment_intent(intent_id)
    refunds = await platform.stripe.refunds(intent_id)
    disputes = await platform.stripe.disputes(intent_id)
    read = Reversals(intent.amount, intent.currency, refunds, disputes)
    async with platform.services.database.transaction() as conn:
        posting = await begin_posting(platform.services, conn, platform.app_id, sale.uid, channel=channel)
        current = await card_sales.of_intent(conn, platform.app_id, config=platform.name, intent_id=intent_id)
        assert current is not None, "sales are not deleted"
        await _apply_reversals(posting, current, read)


async def _sale_of(platform: CardPlatform, intent_id: str) -> CardSale | None:
    async with platform.services.database.connection() as conn:
        return await card_sales.of_intent(conn, platform.app_id, config=platform.name, intent_id=intent_id)


async def _sync_sale(platform: CardPlatform, intent_id: str, *, channel: Channel) -> CardSale | None:
    """Sync the payment or the subscription that an intent has paid, and return the sale."""
    if await sync_intent(platform, intent_id, channel=channel) is None:
        for payment in await platform.stripe.invoices_paid_by(intent_id):
            await _sync_invoice(platform, payment.invoice, channel=channel)
    return await _sale_of(platform, intent_id)


async def _sync_invoice(platform: CardPlatform, invoice_id: str | None, *, channel: Channel) -> None:
    if invoice_id is None:
        return
    invoice = await platform.stripe.invoice(invoice_id)
    if invoice.subscription_id is not None:
        await sync_subscription(platform, invoice.subscription_id, channel=channel)


async def _apply_reversals(posting: Posting, sale: CardSale, read: Reversals) -> None:
    """Reverse or restore a sale, and its grant if there is one, and report that."""
    taken_by = read.taken_by
    if sale.reversed_by is None and taken_by is not None and taken_by != sale.failed_reversal:
        await _take_back(posting, sale, read.money, by=taken_by)
    elif sale.reversed_by is not None and taken_by is None and read.gives_back(sale.reversed_by):
        await _give_back(posting, sale, read.money, by=sale.reversed_by)


async def _take_back(posting: Posting, sale: CardSale, money: Money, *, by: str) -> None:
    granted = await asset_entries.find(posting.conn, posting.app_id, key=sale.key)
    if granted is not None:
        refund = replace(granted, key=f"refund:{by}", kind="refund", channel=posting.channel)
        if not await posting.post(refund):  # Restored before failed reversals were stored.
            return
    await card_sales.reverse(posting.conn, sale, by=by)
    await posting.report(purchase_of(sale, "refund", money, refund_id=by))


async def _give_back(posting: Posting, sale: CardSale, money: Money, *, by: str) -> None:
    granted = await asset_entries.find(posting.conn, posting.app_id, key=sale.key)
    if granted is not None:
        key = f"restore:{sale.reversed_by}"
        await posting.post(replace(granted, key=key, kind="restore", origin="restore", channel=posting.channel))
    await card_sales.restore(posting.conn, sale)
    await posting.report(purchase_of(sale, "restored", money, refund_id=by))
