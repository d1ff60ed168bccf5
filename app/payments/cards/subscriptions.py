"""Subscriptions with a card, which users buy in the app (§4.9)."""

from dataclasses import replace

from pydantic import Field

from app.assets.assets import assets_of
from app.assets.view import AssetView
from app.http.rows.endpoint import Call
from app.http.rows.inputs import Body, Path
from app.http.rows.transactions import Transaction
from app.payments.cards.open_invoices import open_payment, pay_with
from app.payments.cards.periods import sync_subscription
from app.payments.cards.platform import CardPlatform, card_platform
from app.payments.cards.setups import PlatformId, ProductId
from app.payments.cards.subscription_creation import Payer, create_subscription
from app.payments.cards.views import PaymentIntentView, payment_view
from app.payments.subscribing import check_none_live
from storage.configs.kinds.products import PRODUCTS, CardProduct, Product
from storage.payments import subscribed
from storage.payments.cards import subscriptions as card_subscriptions
from storage.payments.cards.subscriptions import (
    CardSubscription,
    CardSubscriptionNotFound,
    NewCardSubscription,
)
from storage.postgres.database import Connection
from streams.wire.errors import ConfigInvalid, InvalidParameter
from streams.wire.model import Model
from streams.wire.period import Period
from vendors.payments.stripe.objects import PaymentIntent, Subscription, money_of


class CardSubscriptionBody(Model):
    product_id: ProductId
    payment_method_id: PlatformId | None = None
    """A card of the user at the platform."""
    setup_intent_id: PlatformId | None = None
    """A setup intent that was confirmed with the card."""


class CardSubscriptionPath(Model):
    sub_id: str = Field(max_length=255)
    """The platform's id of the subscription."""


class CardSubscriptionView(Model):
    id: str
    status: str
    """The platform's status: `incomplete` until the first payment has succeeded, then `trialing`, `active`,
    `past_due` or `canceled`."""
    product_id: str
    """The platform's id of the price."""
    bp_product_id: str
    customer_id: str
    latest_payment_intent: PaymentIntentView | None = None
    """The payment that the app has to confirm. Missing if there is none."""
    current_period_end_ts: int
    """Unix seconds."""
    canceled_ts: int
    """When it was cancelled; 0 if it was not. It lasts until the end of the period."""


class CardSubscriptionReply(Model):
    """The subscription, with the user's assets."""

    cardpay_sub: CardSubscriptionView
    assets: list[AssetView]
    """All assets of the user."""


async def subscribe(
    call: Call, transaction: Transaction, body: Body[CardSubscriptionBody]
) -> CardSubscriptionReply:
    """Subscribe the user to a product.

    Without a card, or if the card is declined, the subscription is `incomplete` until the app has confirmed
    `latest_payment_intent`, or a repeat of this request with another card has paid. A user has one subscription to
    a product: it is returned again while it lasts, resumed if it was cancelled, and paid if it is unpaid. While the
    user has one by wallet, the response is 400. If the user has had a free trial of the asset, by wallet or with a
    card, it begins with a payment.
    """
    services, app_id, uid = call.services, call.app_id, call.caller.user
    if body.payment_method_id is not None and body.setup_intent_id is not None:
        raise InvalidParameter("only one of payment_method_id and setup_intent_id is accepted")
    product, offer, price_id = _offer(call, body.product_id)
    card_platform(services, app_id, offer.config)  # Nothing is stored for a config that cannot be used.
    new = NewCardSubscription(transaction.operation_id, offer.config, body.product_id, product, price_id, None)
    async with services.database.transaction() as conn:
        row = await card_subscriptions.lock_live(conn, app_id, uid, product_id=body.product_id)
        if row is None:
            row = await _add(call, conn, new)
        else:
            await check_none_live(
                conn, app_id, uid, bp_product_id=row.product_id, product=row.sold, besides=row.row_id
            )
    payer = Payer(body.payment_method_id, body.setup_intent_id)
    platform = card_platform(services, app_id, row.config)  # An earlier request may have used another one.
    if row.subscription_id is None:
        subscription_id = await create_subscription(platform, row, payer)
    else:
        subscription_id = await _resume_subscription(platform, row, payer, key=transaction.operation_id)
    return await _reply(platform, row, subscription_id, transaction)


async def get_subscription(call: Call, path: Path[CardSubscriptionPath]) -> CardSubscriptionReply:
    """Read a subscription from the platform, granting paid periods."""
    row, platform = await _row(call, path.sub_id)
    return await _reply(platform, row, path.sub_id)


async def cancel(call: Call, transaction: Transaction, path: Path[CardSubscriptionPath]) -> CardSubscriptionReply:
    """Cancel a subscription at the end of its period.

    An `incomplete` subscription ends at once.
    """
    row, platform = await _row(call, path.sub_id)
    key = f"{transaction.operation_id}:cancel"
    current = await platform.stripe.subscription(path.sub_id)
    if current.status == "incomplete":
        await platform.stripe.cancel_now(key, path.sub_id)
    elif current.renews:
        await platform.stripe.cancel_at_period_end(key, path.sub_id)
    return await _reply(platform, row, path.sub_id, transaction)


async def _add(call: Call, conn: Connection, new: NewCardSubscription) -> CardSubscription:
    """Store a subscription of a locked user, with a trial unless the user has had one."""
    app_id, uid, product, now = call.app_id, call.caller.user, new.product, call.services.clock.now(call.app_id)
    await check_none_live(conn, app_id, uid, bp_product_id=new.product_id, product=product)
    if product.trial is not None and not await subscribed.had_trial(conn, app_id, uid, asset=product.asset):
        new = replace(new, trial_ends_at=Period.parse(product.trial.period).after(now))
    return await card_subscriptions.add(conn, app_id, uid, new=new, now=now)


def _offer(call: Call, product_id: str) -> tuple[Product, CardProduct, str]:
    """Return a product, its `cardpay` settings, and the id of its price at the platform."""
    product = call.services.configs.required(PRODUCTS, call.app_id, product_id).value
    if product.type != "subscription":
        raise InvalidParameter("product_id is not a subscription")
    if product.cardpay is None or product.cardpay.price_id is None:
        raise ConfigInvalid(f"products {product_id}: cardpay.price_id is not set")
    if product.trial is not None and product.trial.amount:
        raise ConfigInvalid(f"products {product_id}: trial.amount must be 0 for card payments")
    return product, product.cardpay, product.cardpay.price_id


async def _resume_subscription(platform: CardPlatform, row: CardSubscription, payer: Payer, *, key: str) -> str:
    name = row.subscription_id
    assert name is not None, "the caller has checked this"
    current = await platform.stripe.subscription(name)
    if current.is_cancelled and current.status in {"trialing", "active", "past_due"}:
        await platform.stripe.resume(f"{key}:resume", current)
    await pay_with(platform, row, current, payer, key=key)
    return name


async def _row(call: Call, subscription_id: str) -> tuple[CardSubscription, CardPlatform]:
    async with call.services.database.connection() as conn:
        row = await card_subscriptions.of_user(conn, call.app_id, call.caller.user, subscription_id=subscription_id)
    if row is None:
        raise CardSubscriptionNotFound(subscription_id)
    return row, card_platform(call.services, call.app_id, row.config)


async def _reply(
    platform: CardPlatform, row: CardSubscription, subscription_id: str, transaction: Transaction | None = None
) -> CardSubscriptionReply:
    """Read a subscription from the platform, apply it, and return the reply."""
    read = await sync_subscription(platform, subscription_id, channel="client")
    assert read is not None, "its row exists"
    services, payment = platform.services, await open_payment(platform, read.subscription)
    view = _view(row, read.subscription, payment)
    now = services.clock.now(row.app_id)
    if transaction is None:
        async with services.database.connection() as conn:
            owned = await assets_of(conn, row.app_id, row.uid, now=now)
        return CardSubscriptionReply(cardpay_sub=view, assets=owned)
    async with transaction.begin() as conn:
        owned = await assets_of(conn, row.app_id, row.uid, now=now)
        return transaction.answer(CardSubscriptionReply(cardpay_sub=view, assets=owned))


def _view(row: CardSubscription, subscription: Subscription, payment: PaymentIntent | None) -> CardSubscriptionView:
    view = None if payment is None else payment_view(payment, money_of(payment.amount, payment.currency))
    return CardSubscriptionView(
        id=subscription.id,
        status=subscription.status,
        product_id=row.price_id,
        bp_product_id=row.product_id,
        customer_id=subscription.customer or "",
        latest_payment_intent=view,
        current_period_end_ts=subscription.period_end or 0,
        canceled_ts=subscription.canceled_at or 0,
    )
