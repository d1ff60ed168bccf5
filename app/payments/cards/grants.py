"""Grants the product of a card payment once the platform reports it as paid."""

from app.assets.grants import grant_of
from app.payments.cards.platform import CardPlatform, find_in
from app.payments.cards.purchases import purchase_of
from app.payments.posting import Posting, begin_posting
from storage.assets.entries import Channel, Entry
from storage.configs.kinds.cardpay import CARDPAY
from storage.configs.kinds.products import Product
from storage.payments.cards import payments as card_payments
from storage.payments.cards import refunds as card_refunds
from storage.payments.cards import sales as card_sales
from storage.payments.cards.payments import CardPayment
from storage.payments.cards.sales import CardSale
from streams.wire.money import Money
from vendors.payments.stripe.objects import PaymentIntent, money_of

PAYMENT_ID = "payment_id"
"""The field of an intent's metadata that names our row."""


async def apply_intent(posting: Posting, payment: CardPayment, intent: PaymentIntent) -> None:
    """Store a payment as read from the platform. Once it is paid, store the sale and grant the product."""
    is_new = await card_payments.set_intent(
        posting.conn, payment.payment_id, intent_id=intent.id, status=intent.status, now=posting.now
    )
    if intent.status != "succeeded":
        return
    sale = CardSale(payment.app_id, payment.config, intent.id, payment.uid, intent.id, None, payment.product_id)
    await card_sales.add(posting.conn, sale)
    paid = money_of(intent.amount, intent.currency)
    if is_new:
        await _report(posting, payment, sale, paid)
    if is_new and posting.is_deactivated:  # It was paid after the account was closed.
        await card_refunds.add(
            posting.conn, payment.app_id,
            config=payment.config, sale_id=sale.sale_id, intent_id=intent.id, money=paid, now=posting.now,
        )  # fmt: skip
    if payment.sold is not None and paid == payment.money:
        await posting.post(_grant(posting, sale, payment.sold))


async def _report(posting: Posting, payment: CardPayment, sale: CardSale, paid: Money) -> None:
    """Report a sale, and a mismatch if the paid amount differs from that of the order."""
    device_info = await card_payments.device_info(posting.conn, payment.payment_id)
    await posting.report(purchase_of(sale, "charge", paid, device_info=device_info))
    await posting.compare_paid(CARDPAY.name, sale.sale_id, paid=paid, expected=[payment.money])


def _grant(posting: Posting, sale: CardSale, product: Product) -> Entry:
    assert sale.product_id is not None, "a product has an id"
    return grant_of(
        product,
        sale.product_id,
        key=sale.key,
        receipt_id=sale.sale_id,
        origin="purchase",
        channel=posting.channel,
        start=posting.now,
        platform=CARDPAY.name,
    )


async def find_intent(platform: CardPlatform, payment: CardPayment) -> PaymentIntent | None:
    """Find the intent that an earlier call has created for a payment in the platform's list."""
    if payment.customer_id is None:  # It is stored before that call.
        return None
    return await find_in(
        platform.stripe.payment_intents, payment.customer_id, field=PAYMENT_ID, value=payment.payment_id
    )


async def sync_intent(platform: CardPlatform, intent_id: str, *, channel: Channel) -> CardPayment | None:
    """Read a payment from the platform and apply it. Return `None` if it is not one of the app's payments."""
    intent = await platform.stripe.payment_intent(intent_id)
    app_id, services = platform.app_id, platform.services
    async with services.database.transaction() as conn:
        payment = await card_payments.of_intent(
            conn,
            app_id,
            config=platform.name,
            intent_id=intent.id,
            payment_id=intent.metadata.get(PAYMENT_ID, ""),
        )
        if payment is not None:
            posting = await begin_posting(services, conn, app_id, payment.uid, channel=channel)
            await apply_intent(posting, payment, intent)
    return payment
