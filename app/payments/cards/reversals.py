"""Refunds and disputes of card payments, which reverse the grant of a sale (§2.7)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from app.payments.cards.grants import sync_intent
from app.payments.cards.periods import sync_subscription
from app.payments.cards.platform import CardPlatform
from app.payments.cards.purchases import purchase_of
from app.payments.posting import Posting, begin_posting
from app.payments.reversals import Payment, apply_reversals
from storage.assets import entries as asset_entries
from storage.assets.entries import Channel
from storage.configs.kinds.cardpay import CARDPAY
from storage.payments import mismatches, operator_refunds
from storage.payments.cards import refunds as card_refunds
from storage.payments.cards import sales as card_sales
from storage.payments.cards.sales import CardSale
from storage.payments.reversals import Reversal, ReversalKind, ReversalState, version_at
from streams.wire.money import Money
from vendors.payments.stripe.objects import Dispute, Refund, money_of

_TAKEN = frozenset({"needs_response", "under_review", "lost"})
"""Statuses of disputes in which the platform has taken the money back."""
_WON = "won"
_MADE = "succeeded"
_FAILED = frozenset({"failed", "canceled"})


@dataclass(frozen=True, slots=True)
class Reversals:
    """The refunds and disputes of a payment. `amount` is in the platform's unit of `currency`."""

    amount: int
    currency: str
    refunds: Sequence[Refund]
    disputes: Sequence[Dispute]
    read_at: datetime
    """Before they were read."""

    @property
    def money(self) -> Money:
        return money_of(self.amount, self.currency)

    def of(self, intent_id: str) -> list[Reversal]:
        """Return those that have taken money, or have given it back.

        The platform takes the money when a dispute is opened, so a dispute is a reversal that may be undone.
        """
        refunds: list[tuple[Refund | Dispute, ReversalKind, ReversalState]] = [
            (refund, "refund", "taken" if refund.status == _MADE else "undone")
            for refund in self.refunds
            if refund.status == _MADE or refund.status in _FAILED
        ]
        disputes: list[tuple[Refund | Dispute, ReversalKind, ReversalState]] = [
            (dispute, "reversal", "undone" if dispute.status == _WON else "taken")
            for dispute in self.disputes
            if dispute.status == _WON or dispute.status in _TAKEN
        ]
        return [self._reversal(intent_id, *found) for found in (*refunds, *disputes)]

    def _reversal(
        self, intent_id: str, found: Refund | Dispute, kind: ReversalKind, state: ReversalState
    ) -> Reversal:
        money = money_of(found.amount, found.currency)
        at = datetime.fromtimestamp(found.created, UTC)
        # A status may change to any other, and the objects do not say when: the newest list is right.
        version = version_at(self.read_at)
        due_by = found.evidence_details.due_by if isinstance(found, Dispute) else None
        return Reversal(
            intent_id, found.id, kind, money.amount, money.currency, state, at, version,
            status=found.status or "", due_at=datetime.fromtimestamp(due_by, UTC) if due_by else None,
        )  # fmt: skip


async def sync_reversals(platform: CardPlatform, intent_id: str, *, channel: Channel) -> None:
    """Read the refunds and disputes of a payment from the platform and apply them.

    If the sale and its grant are missing, they are stored first.
    """
    sale = await _sale_of(platform, intent_id) or await _sync_sale(platform, intent_id, channel=channel)
    if sale is None:
        return
    read_at = datetime.now(UTC)  # The app's clock may be moved.
    intent = await platform.stripe.payment_intent(intent_id)
    refunds = await platform.stripe.refunds(intent_id)
    disputes = await platform.stripe.disputes(intent_id)
    read = Reversals(intent.amount, intent.currency, refunds, disputes, read_at)
    async with platform.services.database.transaction() as conn:
        posting = await begin_posting(platform.services, conn, platform.app_id, sale.uid, channel=channel)
        current = await card_sales.of_intent(conn, platform.app_id, config=platform.name, intent_id=intent_id)
        assert current is not None, "sales are not deleted"
        await _apply_reversals(posting, current, intent_id, read)
        await _report_failed(posting, current, refunds)


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


async def _apply_reversals(posting: Posting, sale: CardSale, intent_id: str, read: Reversals) -> None:
    """Take back or restore what a sale has granted, and report that. Of a sale without a grant, only report it."""
    granted = await asset_entries.find(posting.conn, posting.app_id, key=sale.key)
    order_id = sale.subscription_id or intent_id
    payment = Payment(CARDPAY.name, intent_id, read.money, read.of(intent_id), order_id=order_id)
    change = await apply_reversals(posting, payment, granted)
    if change is None or (granted is None and change.kind == "refund" and sale.reversed_by is not None):
        return
    await card_sales.set_reversed(posting.conn, sale, by=change.by if change.kind == "refund" else None)
    await posting.report(purchase_of(sale, change.kind, change.money, refund_id=change.by))


async def _report_failed(posting: Posting, sale: CardSale, refunds: Sequence[Refund]) -> None:
    """Tell operators of a refund that we have made, or one of them has asked for, and that has failed later."""
    conn, app_id = posting.conn, posting.app_id
    for refund in refunds:
        if refund.status is None or refund.status not in _FAILED:
            continue
        problem = {"refund_id": refund.id, "problem": refund.status}
        is_ours = await card_refunds.set_failed(conn, app_id, **problem)
        if is_ours or await operator_refunds.set_failed_later(conn, app_id, **problem):
            await mismatches.add(
                conn, app_id,
                platform=CARDPAY.name, kind="refund_failed", subject=sale.sale_id,
                detail=f"{money_of(refund.amount, refund.currency)}: {refund.status}", now=posting.now,
            )  # fmt: skip
