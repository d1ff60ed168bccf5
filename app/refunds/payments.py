"""Finds the payment of an order or a subscription that is to be refunded, and how much of it is left."""

from dataclasses import dataclass, replace

from app.payments.cards.platform import card_platform
from app.payments.cards.reversals import sync_reversals
from app.payments.reversals import lost_of
from app.payments.wallet.order_sync import PAID, sync_order
from app.payments.wallet.refunds import refunded_of
from app.payments.wallet.subscription_sync import sync_subscription
from app.payments.wallet.wallet import PLATFORM, account_of
from app.refunds.errors import NothingToRefund, PaymentNotFound
from app.services import Services
from storage.configs.kinds.cardpay import CARDPAY
from storage.payments import operator_refunds, order_list
from storage.payments import reversals as stored_reversals
from storage.payments.cards import refunds as card_refunds
from storage.payments.cards import sales as card_sales
from storage.payments.order_list import ListedOrder
from storage.payments.wallet import orders as wallet_orders
from storage.payments.wallet import subscriptions as wallet_subscriptions
from storage.postgres.database import Connection
from streams.wire.money import Money
from vendors.payments.stripe.objects import money_of

_SUCCEEDED = "succeeded"
_SALES = ("card:", "wallet:sale:")
"""How the keys of grants of subscriptions begin."""


@dataclass(frozen=True, slots=True)
class Paid:
    """A payment at a platform, as it was just read."""

    payment_id: str
    """The intent of a card, or a capture or a sale of the wallet."""
    money: Money
    sale_id: str | None = None
    """The payment of a subscription, as the ledger names it: the invoice of a card, or the sale of the wallet."""


async def read_payment(services: Services, order: ListedOrder, *, payment: str | None) -> Paid:
    """Read a payment of an order back and apply it, so that what is left of it is known.

    `payment` is one of those of a subscription. Default: the last one. Raises `NothingToRefund`, `PaymentNotFound`,
    `ConfigInvalid` or `VendorError`.
    """
    if order.platform_id is None:
        raise NothingToRefund("the order was not paid")
    is_card, is_subscription = order.platform == CARDPAY.name, order.amount is None
    if is_subscription:
        sale = await _sale_of(services, order, payment=payment)
        return await (_of_invoice if is_card else _of_sale)(services, order, sale)
    found = await (_of_intent(services, order, order.platform_id) if is_card else _of_order(services, order))
    if payment is not None and payment != found.payment_id:
        raise PaymentNotFound(payment)
    return found


async def _sale_of(services: Services, order: ListedOrder, *, payment: str | None) -> str:
    """Return the payment of a subscription that is asked for, or the last one, by what they have granted."""
    async with services.database.connection() as conn:
        entries = [stored.entry for stored in await order_list.entries(conn, order)]
    sales = [
        entry.key.rpartition(":")[2]
        for entry in entries
        if entry.kind == "grant" and entry.key.startswith(_SALES) and entry.subscription == order.platform_id
    ]
    if payment is not None and payment not in sales:
        raise PaymentNotFound(payment)
    if not sales:
        raise NothingToRefund("the subscription was not paid")
    return payment or sales[-1]


async def _of_invoice(services: Services, order: ListedOrder, sale_id: str) -> Paid:
    async with services.database.connection() as conn:
        intent_id = await card_sales.intent_of(conn, order.app_id, config=order.config, sale_id=sale_id)
    if intent_id is None:
        raise NothingToRefund("nothing was charged for the period")
    return replace(await _of_intent(services, order, intent_id), sale_id=sale_id)


async def _of_intent(services: Services, order: ListedOrder, intent_id: str) -> Paid:
    platform = card_platform(services, order.app_id, order.config)
    await sync_reversals(platform, intent_id, channel="operator")
    intent = await platform.stripe.payment_intent(intent_id)
    if intent.status != _SUCCEEDED:
        raise NothingToRefund("the order was not paid")
    return Paid(intent_id, money_of(intent.amount, intent.currency))


async def _of_order(services: Services, order: ListedOrder) -> Paid:
    async with services.database.connection() as conn:
        row = await wallet_orders.get(conn, order.app_id, row_id=order.row_id)
    row, read = await sync_order(services, order.app_id, row, channel="operator")
    for capture in read.captures if read is not None else []:
        if capture.status in PAID:
            return Paid(capture.id, capture.amount or row.price)
    raise NothingToRefund("the order was not paid")


async def _of_sale(services: Services, order: ListedOrder, sale_id: str) -> Paid:
    async with services.database.connection() as conn:
        row = await wallet_subscriptions.get(conn, order.app_id, row_id=order.row_id)
    await sync_subscription(services, order.app_id, row, channel="operator")
    sale = await account_of(services, order.app_id, order.config).sale(sale_id)
    return Paid(sale_id, sale.amount, sale_id)


async def left_of(conn: Connection, order: ListedOrder, paid: Paid) -> Money:
    """Return how much of a payment can be refunded: what is disputed or is being refunded cannot."""
    app_id, currency = order.app_id, paid.money.currency
    if order.platform == PLATFORM:
        gone = await refunded_of(conn, app_id, paid.payment_id, paid.money)
    else:
        gone = await _refunded_of_card(conn, app_id, paid)
    return Money(max(0, paid.money.amount - gone.amount), currency)


async def _refunded_of_card(conn: Connection, app_id: str, paid: Paid) -> Money:
    currency, payment_id = paid.money.currency, paid.payment_id
    stored = await stored_reversals.of_payments(conn, app_id, platform=CARDPAY.name, payment_ids=[payment_id])
    if await card_refunds.is_refunding(conn, app_id, intent_id=payment_id):
        return paid.money
    of_operators = await operator_refunds.unreported(
        conn, app_id, platform=CARDPAY.name, payment_id=payment_id, currency=currency
    )
    return Money(lost_of(paid.money, stored).gone, currency) + of_operators
