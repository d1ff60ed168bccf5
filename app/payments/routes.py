"""Routes of payments."""

from app.http.area import Area
from app.http.docs import Docs
from app.http.endpoint import Endpoint
from app.payments.cards import create_payment_intent, get_payment_intent
from storage.card_payments import CardPaymentNotFound
from streams.wire.errors import ConfigInvalid
from vendors.errors import VendorError

PAYMENTS = Area("payments", "Payments", "Purchases with a card.", scope="payments")
_PLATFORM_ERRORS = (ConfigInvalid, VendorError)
_CREATE = Docs(
    bodies={
        "A product": {"amonut": 199, "currency": "usd", "product_id": "coins_100", "email": "ada@example.com"},
        "The card that was linked last": {"amonut": 500, "currency": "eur", "with_customer_payment_method": True},
    }
)
_INTENTS = "/bp/server/user/{user_id}/asset/cardpay_payment_intent"

PAYMENT_ROUTES = [
    Endpoint("POST", _INTENTS, create_payment_intent, PAYMENTS, errors=_PLATFORM_ERRORS, docs=_CREATE),
    Endpoint(
        "GET",
        f"{_INTENTS}/{{payment_intent_id}}",
        get_payment_intent,
        PAYMENTS,
        errors=(CardPaymentNotFound, *_PLATFORM_ERRORS),
    ),
]
