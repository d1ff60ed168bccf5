"""Routes of payments with a card."""

from dataclasses import replace

from app.http.callers.area import Area
from app.http.callers.limits import Limit
from app.http.errors import PathNotFound
from app.http.rows.docs import Docs
from app.http.rows.endpoint import Endpoint
from app.payments.cards.cards import create_payment_intent, get_payment_intent
from app.payments.cards.debug import confirm_payment_intent, confirm_setup_intent, has_debug, set_default_method
from app.payments.cards.setups import create_setup_intent
from app.payments.cards.subscription_creation import CardSetupNotFound, SetupUnfinished
from app.payments.cards.subscriptions import cancel, get_subscription, subscribe
from app.payments.subscribing import AlreadySubscribed
from storage.payments.cards.payments import CardPaymentNotFound
from storage.payments.cards.subscriptions import CardSubscriptionNotFound
from streams.wire.errors import ConfigInvalid
from vendors.errors import VendorError
from vendors.payments.stripe.errors import CardDeclined

CARDS = Area("cards", "Card payments", "Purchases and subscriptions with a card.", scope="payments")
_PAYMENTS = replace(CARDS, single_use_token=True)
_READ = Limit("payment_reads")
_PLATFORM_ERRORS = (ConfigInvalid, VendorError)
_CARD = {"number": "4242424242424242", "exp_month": "12", "exp_year": "2040", "cvc": "123"}
_CREATE = Docs(
    bodies={
        "A product": {"amonut": 199, "currency": "usd", "product_id": "coins_100", "email": "ada@example.com"},
        "The card that was linked last": {"amonut": 500, "currency": "eur", "with_customer_payment_method": True},
    }
)
_SUBSCRIBE = Docs(
    bodies={
        "A card that was set up": {"product_id": "pro_month", "setup_intent_id": "seti_1NxRt"},
        "A card": {"product_id": "pro_month", "payment_method_id": "pm_1NxRt"},
    }
)
_CONFIRM_SETUP = Docs(bodies={"A test card": {"setup_intent_id": "seti_1NxRt", "card": _CARD}})
_CONFIRM_PAYMENT = Docs(bodies={"A test card": {"payment_intent_id": "pi_3NxRt", "card": _CARD}})
_SET_METHOD = Docs(bodies={"A test card": {"payment_method_name": "pm_card_visa", "config_name": "Default"}})
_INTENTS = "/bp/server/user/{user_id}/asset/cardpay_payment_intent"
_SUBSCRIPTION = "/bp/asset/cardpay_sub/{sub_id}"
_DEBUG = "/bp/asset/debug"

CARD_ROUTES = [
    Endpoint("POST", _INTENTS, create_payment_intent, _PAYMENTS, errors=_PLATFORM_ERRORS, docs=_CREATE),
    Endpoint(
        "GET",
        f"{_INTENTS}/{{payment_intent_id}}",
        get_payment_intent,
        _PAYMENTS,
        errors=(CardPaymentNotFound, *_PLATFORM_ERRORS),
    ),
    Endpoint(
        "POST",
        "/bp/asset/cardpay_setup_intent",
        create_setup_intent,
        CARDS,
        limit=Limit("cards"),
        errors=_PLATFORM_ERRORS,
    ),
    Endpoint(
        "POST",
        "/bp/asset/cardpay_sub",
        subscribe,
        CARDS,
        limit=Limit("cards"),
        errors=(CardSetupNotFound, SetupUnfinished, AlreadySubscribed, *_PLATFORM_ERRORS),
        docs=_SUBSCRIBE,
    ),
    Endpoint(
        "GET",
        _SUBSCRIPTION,
        get_subscription,
        CARDS,
        limit=_READ,
        errors=(CardSubscriptionNotFound, *_PLATFORM_ERRORS),
    ),
    Endpoint(
        "DELETE", _SUBSCRIPTION, cancel, CARDS, limit=_READ, errors=(CardSubscriptionNotFound, *_PLATFORM_ERRORS)
    ),
    Endpoint(
        "POST",
        f"{_DEBUG}/cardpay_setup_intent/confirm",
        confirm_setup_intent,
        CARDS,
        errors=(PathNotFound, CardSetupNotFound, *_PLATFORM_ERRORS),
        docs=_CONFIRM_SETUP,
        exists=has_debug,
    ),
    Endpoint(
        "POST",
        f"{_DEBUG}/cardpay_payment_intent/confirm",
        confirm_payment_intent,
        CARDS,
        errors=(PathNotFound, CardPaymentNotFound, *_PLATFORM_ERRORS),
        docs=_CONFIRM_PAYMENT,
        exists=has_debug,
    ),
    Endpoint(
        "POST",
        f"{_DEBUG}/cardpay_sub/{{sub_id}}/default_payment_method",
        set_default_method,
        CARDS,
        errors=(PathNotFound, CardSubscriptionNotFound, CardSetupNotFound, CardDeclined, VendorError),
        docs=_SET_METHOD,
        exists=has_debug,
    ),
]
