"""What a payment with a card grants, once the platform says that it is paid."""

from datetime import datetime

import structlog

from app.assets.grants import grant_of
from app.payments.card_platform import CardPlatform
from app.payments.posting import post
from storage import users
from storage.asset_entries import Channel, Entry
from storage.event_outbox import EventSinks, PurchaseEvent
from storage.kinds.cardpay import CARDPAY
from storage.payments import card_payments, card_sales
from storage.payments.card_payments import CardPayment
from storage.postgres import Connection
from vendors.payments.stripe_objects import PaymentIntent, money_of, platform_amount

log = structlog.get_logger()

PAYMENT_ID = "payment_id"
"""The field of an intent's metadata that names our row."""


async def apply_intent(
    conn: Connection,
    payment: CardPayment,
    intent: PaymentIntent,
    *,
    channel: Channel,
    now: datetime,
    sinks: EventSinks,
) -> None:
    """Store what was read of a payment, and grant what it has paid for. `conn` is in a transaction."""
    await users.lock_all(conn, payment.app_id, uids=[payment.uid])
    is_new = await card_payments.set_intent(
        conn, payment.payment_id, intent_id=intent.id, status=intent.status, now=now
    )
    if is_new and intent.status == "succeeded":
        await _report(conn, payment, intent, now=now, sinks=sinks)
    product = payment.sold
    if intent.status != "succeeded" or product is None or payment.product_id is None:
        return
    if (intent.amount, intent.currency) != (platform_amount(payment.money), payment.currency.lower()):
        log.error("card_payment.amount_differs", app_id=payment.app_id, payment_id=payment.payment_id)
        return
    entry = grant_of(
        product,
        payment.product_id,
        key=card_sales.key_of(intent.id),
        receipt_id=intent.id,
        origin="purchase",
        channel=channel,
        start=now,
        platform=CARDPAY.name,
    )
    await grant(
        conn, payment.app_id, payment.uid,
        config=payment.config, entry=entry, sale_id=intent.id, intent_id=intent.id, now=now, sinks=sinks,
    )  # fmt: skip


async def _report(
    conn: Connection, payment: CardPayment, intent: PaymentIntent, *, now: datetime, sinks: EventSinks
) -> None:
    """Report a payment that has succeeded."""
    if not sinks.want(payment.app_id, "purchase"):
        return
    money = money_of(intent.amount, intent.currency)
    purchase = PurchaseEvent(
        user_id=payment.uid,
        kind="charge",
        platform=CARDPAY.name,
        config=payment.config,
        transaction_id=intent.id,
        product_id=payment.product_id,
        amount=money.amount,
        currency=money.currency,
        device_info=await card_payments.device_info(conn, payment.payment_id),
    )
    await sinks.report(conn, payment.app_id, purchase, now=now)


async def grant(
    conn: Connection,
    app_id: str,
    uid: str,
    *,
    config: str,
    entry: Entry,
    sale_id: str,
    intent_id: str | None,
    now: datetime,
    sinks: EventSinks,
) -> bool:
    """Enter a grant, once. Return whether it was new.

    `sale_id`: the payment or invoice of the platform. `intent_id`: what has paid it.
    """
    is_new = await post(conn, app_id, uid, entry=entry, now=now, sinks=sinks)
    if is_new:
        await card_sales.add(conn, app_id, uid, config=config, sale_id=sale_id, intent_id=intent_id)
    return is_new


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
            now = services.clock.now(app_id)
            await apply_intent(conn, payment, intent, channel=channel, now=now, sinks=services.sinks)
    return payment
