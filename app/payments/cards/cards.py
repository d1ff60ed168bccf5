"""One-off payments with a card, which an app's server creates (§4.9)."""

from typing import Annotated, Any

from pydantic import AfterValidator, AliasChoices, Field

from app.assets.assets import assets_of
from app.http.rows.endpoint import Call
from app.http.rows.inputs import Body, Path, Query
from app.http.rows.transactions import Transaction
from app.payments.cards.grants import PAYMENT_ID, apply_intent, find_intent
from app.payments.cards.platform import DEFAULT_CONFIG, CardPlatform, card_platform
from app.payments.cards.views import PaymentIntentReply, PaymentIntentWithAssets, view_of
from app.payments.posting import begin_client_posting
from storage.configs.kinds.products import MAX_AMOUNT, PRODUCTS, Product
from storage.payments.cards import payments as card_payments
from storage.payments.cards.payments import CardPayment, CardPaymentNotFound, NewCardPayment
from streams.wire.codec import dumps
from streams.wire.errors import InvalidParameter
from streams.wire.model import Matches, Model
from streams.wire.money import Currency, Money
from vendors.payments.stripe.client import Stripe
from vendors.payments.stripe.objects import PaymentIntent, platform_amount

_DEVICE_INFO_BYTES = 8 * 1024


def _small(value: dict[str, Any]) -> dict[str, Any]:
    if len(dumps(value)) > _DEVICE_INFO_BYTES:
        raise ValueError(f"must have at most {_DEVICE_INFO_BYTES} bytes")
    return value


_EMAIL = Matches(r"^[^\s@]+@[^\s@]+$", "must be an email address")
ConfigName = Annotated[str, Field(min_length=1, max_length=128)]


class NewPaymentIntent(Model):
    pay_platform_config_name: ConfigName = DEFAULT_CONFIG
    """Name of a config of kind `cardpay`."""
    email: Annotated[str, Field(max_length=254), _EMAIL] | None = None
    """Where the platform sends the receipt."""
    use_default_payment_method: bool = False
    """Whether to use the default payment method of the user, so that the app need not ask for a card."""
    with_customer_payment_method: bool = False
    """Whether to charge the most recently linked card of the user at once. If that fails, or there is none, the
    payment can still be made with another card."""
    amonut: int = Field(ge=1, le=MAX_AMOUNT, validation_alias=AliasChoices("amonut", "amount"))
    """The price in minor units of the currency, such as cents. The interface spells the name so; `amount` is
    accepted too."""
    currency: Currency
    """The ISO 4217 code, such as usd."""
    device_info: Annotated[dict[str, Any], AfterValidator(_small)] | None = None
    """Details of the device, for reports of purchases. At most 8 KiB."""
    product_id: Annotated[str, Field(min_length=1, max_length=128)] | None = None
    """Name of a config of kind `products` whose price this is. It is granted as soon as it is paid."""


class PaymentIntentPath(Model):
    payment_intent_id: str = Field(max_length=255)
    """The platform's id of the payment."""


class PlatformQuery(Model):
    pay_platform_config_name: ConfigName = DEFAULT_CONFIG
    """Name of a config of kind `cardpay`."""


async def create_payment_intent(
    call: Call, transaction: Transaction, body: Body[NewPaymentIntent]
) -> PaymentIntentReply:
    """Create a payment of a user.

    The app confirms it with the `client_secret` and a card. A declined card is not an error: the payment is
    returned with the status `requires_payment_method`.
    """
    services = call.services
    platform = card_platform(services, call.app_id, body.pay_platform_config_name)
    new = _payment(call, body, platform, payment_id=transaction.operation_id)
    async with services.database.transaction() as conn:
        payment = await card_payments.add(conn, new, now=services.clock.now(call.app_id))
    intent = await _intent_of(platform, payment, body)
    async with transaction.begin() as conn:
        posting = await begin_client_posting(call, conn)
        await apply_intent(posting, payment, intent)
        return transaction.answer(PaymentIntentReply(cardpay_payment_intent=view_of(payment, intent)))


async def get_payment_intent(
    call: Call, path: Path[PaymentIntentPath], query: Query[PlatformQuery]
) -> PaymentIntentWithAssets:
    """Read a payment of a user from the card platform.

    If it was paid, its product is granted.
    """
    services, app_id, uid = call.services, call.app_id, call.caller.user
    platform = card_platform(services, app_id, query.pay_platform_config_name)
    async with services.database.connection() as conn:
        payment = await card_payments.of_user(
            conn, app_id, uid, config=platform.name, intent_id=path.payment_intent_id
        )
    if payment is None:
        raise CardPaymentNotFound(path.payment_intent_id)
    intent = await platform.stripe.payment_intent(path.payment_intent_id)
    async with services.database.transaction() as conn:
        posting = await begin_client_posting(call, conn)
        await apply_intent(posting, payment, intent)
        owned = await assets_of(conn, app_id, uid, now=posting.now)
    return PaymentIntentWithAssets(cardpay_payment_intent=view_of(payment, intent), assets=owned)


def _payment(call: Call, body: NewPaymentIntent, platform: CardPlatform, *, payment_id: str) -> NewCardPayment:
    money = Money(body.amonut, body.currency)
    if platform.config.currencies and money.currency not in platform.config.currencies:
        raise InvalidParameter(f"currency must be one of {', '.join(platform.config.currencies)}")
    try:
        platform_amount(money)
    except ValueError as error:
        raise InvalidParameter(f"amonut {error}") from None
    return NewCardPayment(
        payment_id=payment_id,
        app_id=call.app_id,
        uid=call.caller.user,
        config=platform.name,
        money=money,
        product_id=body.product_id,
        product=None if body.product_id is None else _product(call, body.product_id, money),
        email=body.email,
        device_info=body.device_info,
    )


def _product(call: Call, product_id: str, money: Money) -> Product:
    """Return a product that can be bought for `money`. Raises `ConfigInvalid` if there is none."""
    product = call.services.configs.required(PRODUCTS, call.app_id, product_id).value
    if product.type == "subscription":
        raise InvalidParameter("product_id names a subscription, which is not bought by one payment")
    if product.price is None or money not in product.price.all:
        raise InvalidParameter(f"amonut is not the price of {product_id} in {money.currency}")
    return product


async def _prepare_payment(
    platform: CardPlatform, payment: CardPayment, body: NewPaymentIntent, *, customer: str
) -> CardPayment:
    """Choose the payment method, and store it before the call that may charge it."""
    method = await _method(platform.stripe, customer, body)
    async with platform.services.database.connection() as conn:
        return await card_payments.prepare(
            conn,
            payment.payment_id,
            customer_id=customer,
            payment_method=method,
            confirms=body.with_customer_payment_method and method is not None,
        )


async def _method(stripe: Stripe, customer: str, body: NewPaymentIntent) -> str | None:
    if body.with_customer_payment_method:
        cards = await stripe.cards(customer)
        return cards[0].id if cards else None
    if body.use_default_payment_method:
        return (await stripe.customer(customer)).default_method
    return None


async def _intent_of(platform: CardPlatform, payment: CardPayment, body: NewPaymentIntent) -> PaymentIntent:
    """Return the payment at the platform. Create it unless an earlier attempt has done so."""
    if payment.intent_id is not None:
        return await platform.stripe.payment_intent(payment.intent_id)
    if not platform.knows_keys_since(payment.created_at):
        earlier = await find_intent(platform, payment)
        if earlier is not None:
            return earlier

    async def create(customer: str, _: str | None) -> PaymentIntent:
        prepared = payment
        if payment.customer_id != customer:
            prepared = await _prepare_payment(platform, payment, body, customer=customer)
        return await _create_intent(platform, prepared, email=body.email)

    return await platform.for_customer(payment.uid, create, customer=payment.customer_id)


async def _create_intent(platform: CardPlatform, payment: CardPayment, *, email: str | None) -> PaymentIntent:
    customer = payment.customer_id
    assert customer is not None, "it is prepared"
    return await platform.stripe.create_payment_intent(
        f"{payment.payment_id}:create",
        amount=platform_amount(payment.money),
        currency=payment.currency,
        customer=customer,
        payment_method=payment.payment_method,
        confirm=payment.confirms,
        email=email,
        metadata={"app_id": payment.app_id, "uid": payment.uid, PAYMENT_ID: payment.payment_id},
    )
