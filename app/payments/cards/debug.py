"""Debug endpoints, which pay with test cards (§4.9). They exist where a config of kind `cardpay` has `debug`.

Card numbers are never sent to the platform: each test number stands for a payment method that the platform knows by
name.
"""

from typing import Annotated

from pydantic import AfterValidator, model_validator

from app.http.errors import PathNotFound
from app.http.rows.endpoint import Call
from app.http.rows.inputs import Body, Path
from app.http.rows.replies import Empty
from app.http.rows.transactions import Transaction
from app.payments.cards.cards import ConfigName
from app.payments.cards.grants import apply_intent
from app.payments.cards.periods import sync_subscription
from app.payments.cards.platform import CardPlatform, card_platform
from app.payments.cards.setups import PlatformId, ProductId, config_for
from app.payments.cards.subscription_creation import CardSetupNotFound, existing
from app.payments.cards.subscriptions import CardSubscriptionPath
from app.payments.cards.views import PaymentIntentReply, SetupIntentReply, setup_view, view_of
from app.payments.posting import begin_client_posting
from app.services import Services
from storage.configs.kinds.cardpay import CARDPAY
from storage.configs.rows import ConfigKey
from storage.payments.cards import payments as card_payments
from storage.payments.cards import subscriptions as card_subscriptions
from storage.payments.cards.payments import CardPaymentNotFound
from storage.payments.cards.subscriptions import CardSubscriptionNotFound
from streams.wire.disclosure import told_cause
from streams.wire.errors import ConfigInvalid, InvalidParameter
from streams.wire.model import Matches, Model
from vendors.payments.stripe.card_numbers import TEST_CARDS

_DIGITS = "must consist of digits"


def _test_card(number: str) -> str:
    """Refuse other numbers before anything is derived from them, such as the fingerprint of a request."""
    if number not in TEST_CARDS:
        raise ValueError("must be the number of a test card")
    return number


class TestCardBody(Model):
    number: Annotated[str, AfterValidator(_test_card)]
    exp_month: Annotated[str, Matches(r"^(0?[1-9]|1[0-2])$", "must be a month, as digits")]
    exp_year: Annotated[str, Matches(r"^[0-9]{4}$", "must be a year, as four digits")]
    cvc: Annotated[str, Matches(r"^[0-9]{3,4}$", _DIGITS)]

    @property
    def method(self) -> str:
        """The platform's name of the card."""
        return TEST_CARDS[self.number]


class SetupConfirmation(Model):
    setup_intent_id: PlatformId
    product_id: ProductId | None = None
    """The product whose config of kind `cardpay` is used."""
    card: TestCardBody


class PaymentConfirmation(Model):
    payment_intent_id: PlatformId
    product_id: ProductId | None = None
    """The product whose config of kind `cardpay` is used."""
    card: TestCardBody | None = None
    payment_method_id: PlatformId | None = None

    @model_validator(mode="after")
    def _check_method(self) -> "PaymentConfirmation":
        if (self.card is None) is (self.payment_method_id is None):
            raise ValueError("exactly one of card and payment_method_id is required")
        return self

    @property
    def method(self) -> str:
        return self.payment_method_id or ("" if self.card is None else self.card.method)


class DefaultMethod(Model):
    payment_method_name: PlatformId
    """The name of a test card, such as `pm_card_visa`."""
    config_name: ConfigName
    """Name of a config of kind `cardpay`."""


async def confirm_setup_intent(
    call: Call, transaction: Transaction, body: Body[SetupConfirmation]
) -> SetupIntentReply:
    """Confirm a setup intent with a test card.

    Only debug environments have this endpoint.
    """
    platform = _debugged(call, card_platform(call.services, call.app_id, config_for(call, body.product_id)))
    method, name = body.card.method, body.setup_intent_id
    intent = await existing(platform.stripe.setup_intent(name), name)
    if intent.customer is None or intent.customer != await platform.customer_of(call.caller.user):
        raise CardSetupNotFound(name)
    key = f"{transaction.operation_id}:confirm"
    done = await platform.stripe.confirm_setup_intent(key, name, payment_method=method)
    async with transaction.begin():
        return transaction.answer(SetupIntentReply(cardpay_setup_intent=setup_view(done)))


async def confirm_payment_intent(
    call: Call, transaction: Transaction, body: Body[PaymentConfirmation]
) -> PaymentIntentReply:
    """Confirm a payment with a test card or a payment method.

    Only debug environments have this endpoint.
    """
    platform = _debugged(call, card_platform(call.services, call.app_id, config_for(call, body.product_id)))
    method, name, uid = body.method, body.payment_intent_id, call.caller.user
    async with call.services.database.connection() as conn:
        payment = await card_payments.of_user(conn, call.app_id, uid, config=platform.name, intent_id=name)
    if payment is None:
        raise CardPaymentNotFound(name)
    key = f"{transaction.operation_id}:confirm"
    intent = await platform.stripe.confirm_payment_intent(key, name, payment_method=method)
    async with transaction.begin() as conn:
        posting = await begin_client_posting(call, conn)
        await apply_intent(posting, payment, intent)
        return transaction.answer(PaymentIntentReply(cardpay_payment_intent=view_of(payment, intent)))


async def set_default_method(
    call: Call, transaction: Transaction, path: Path[CardSubscriptionPath], body: Body[DefaultMethod]
) -> Empty:
    """Set a test card as the payment method of a subscription.

    Only debug environments have this endpoint.
    """
    try:
        platform = card_platform(call.services, call.app_id, body.config_name)
    except ConfigInvalid as error:
        told = told_cause(error, in_full=call.services.settings.development)
        raise InvalidParameter(f"config_name: {told}") from error  # The log has the cause.
    platform = _debugged(call, platform)
    async with call.services.database.connection() as conn:
        row = await card_subscriptions.of_user(conn, call.app_id, call.caller.user, subscription_id=path.sub_id)
    if row is None or row.config != platform.name or row.customer_id is None:
        raise CardSubscriptionNotFound(path.sub_id)
    customer, keys, name = row.customer_id, transaction.operation_id, body.payment_method_name
    method = await existing(platform.stripe.attach(f"{keys}:attach", name, customer=customer), name)
    await platform.stripe.set_subscription_method(f"{keys}:method", path.sub_id, payment_method=method.id)
    await sync_subscription(platform, path.sub_id, channel="client")
    async with transaction.begin():
        return transaction.answer(Empty())


def has_debug(services: Services, app_id: str) -> bool:
    """Return whether any config of kind `cardpay` of an app has `debug`."""
    configs = services.configs
    return any(
        configs.get(CARDPAY, app_id, name).value.debug
        for name in configs.names(CARDPAY, app_id)
        if configs.fault(ConfigKey(app_id, CARDPAY.name, name)) is None
    )


def _debugged(call: Call, platform: CardPlatform) -> CardPlatform:
    """Return the platform. Raises `PathNotFound` unless its config has `debug`."""
    if not platform.config.debug:
        raise PathNotFound(call.request.path)
    return platform
