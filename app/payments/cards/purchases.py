"""The events of card payments for an app's sinks."""

from typing import Any

from storage.configs.kinds.cardpay import CARDPAY
from storage.events.outbox import PurchaseEvent, PurchaseKind
from storage.payments.cards.sales import CardSale
from streams.wire.money import Money


def purchase_of(
    sale: CardSale,
    kind: PurchaseKind,
    money: Money,
    *,
    refund_id: str | None = None,
    device_info: dict[str, Any] | None = None,
) -> PurchaseEvent:
    """Return the event of a sale, or of the refund or dispute `refund_id` that reverses or restores it."""
    return PurchaseEvent(
        user_id=sale.uid,
        kind=kind,
        platform=CARDPAY.name,
        config=sale.config,
        transaction_id=sale.sale_id,
        refund_id=refund_id,
        subscription_id=sale.subscription_id,
        product_id=sale.product_id,
        amount=money.amount,
        currency=money.currency,
        device_info=device_info,
    )
