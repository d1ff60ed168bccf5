"""What a payment with a card grants, once the platform says that it is paid."""

import structlog

from app.assets.grants import grant_of
from app.payments.card_platform import CardPlatform
from app.payments.card_purchases import purchase_of
from app.payments.posting import Posting, begin_posting
from storage.asset_entries import Channel
from storage.kinds.cardpay import CARDPAY
from storage.payments import card_payments, card_sales
from storage.payments.card_payments import CardPayment
from storage.payments.card_sales import CardSale
from vendors.payments.stripe_objects import PaymentIntent, money_of, platform_amount

log = structlog.get_logger()

PAYMENT_ID = "payment_id"
"""The field of an intent's metadata that names our row."""


async def apply_intent(posting: Posting, payment: CardPayment, intent: PaymentIntent) -> None:
    """Store what was read of a payment, and grant what it has paid for."""
    conn, product, product_id = posting.conn, payment.sold, payment.product_id
    is_new = await card_payments.set_intent(
        conn, payment.payment_id, intent_id=intent.id, status=intent.status, now=posting.now
    )
    if intent.status != "succeeded":
        return
    if is_new:
        await _report(posting, payment, intent)
    if product is None or product_id is None:
        return
    if (intent.amount, intent.currency) != (platform_amount(payment.money), payment.currency.lower()):
        log.error("card_payment.amount_differs", app_id=payment.app_id, payment_id=payment.payment_id)
        return
    entry = grant_of(
        product,
        product_id,
        key=card_sales.key_of(intent.id),
        receipt_id=intent.id,
        origin="purchase",
        channel=posting.channel,
        start=posting.now,
        platform=CARDPAY.name,
    )
    await card_sales.add(conn, _sale(payment, intent))
    await posting.post(entry)


def _sale(payment: CardPayment, intent: PaymentIntent) -> CardSale:
    return CardSale(payment.app_id, payment.config, intent.id, payment.uid, intent.id, None, payment.product_id)


async def _report(posting: Posting, payment: CardPayment, intent: PaymentIntent) -> None:
    """Report a payment that has succeeded."""
    money = money_of(intent.amount, intent.currency)
    device_info = await card_payments.device_info(posting.conn, payment.payment_id)
    await posting.report(purchase_of(_sale(payment, intent), "charge", money, device_info=device_info))


async def sync_intent(platform: CardPlatform, intent_id: str, *, channel: Channel) -> CardPayment | None:
    """Read a payment from the platform and apply it. Return `None` if it is not one of the app's payments."""
    intent = await platform.call(lambda stripe: stripe.payment_intent(intent_id))
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
