"""JSON representation of payments and setups at the card platform (§2.8)."""

from app.assets.view import AssetView
from storage.payments.cards.payments import CardPayment
from streams.wire.model import Model
from streams.wire.money import Money
from vendors.payments.stripe.objects import PaymentIntent, SetupIntent


class PaymentIntentView(Model):
    id: str
    client_secret: str
    """The app needs it to let the user pay."""
    status: str
    """The platform's status, such as `requires_payment_method` or `succeeded`."""
    payment_method_id: str
    """Empty if there is none."""
    customer_id: str
    amount: int
    """In minor units of the currency, such as cents."""
    currency: str
    """In lower case."""


class SetupIntentView(Model):
    id: str
    client_secret: str
    customer_id: str
    payment_method_id: str
    status: str


class PaymentIntentReply(Model):
    """The payment."""

    cardpay_payment_intent: PaymentIntentView


class PaymentIntentWithAssets(PaymentIntentReply):
    """The payment, with the user's assets."""

    assets: list[AssetView]
    """All assets of the user."""


class SetupIntentReply(Model):
    """The setup intent, by which a card is linked."""

    cardpay_setup_intent: SetupIntentView


def payment_view(intent: PaymentIntent, money: Money) -> PaymentIntentView:
    return PaymentIntentView(
        id=intent.id,
        client_secret=intent.client_secret or "",
        status=intent.status,
        payment_method_id=intent.payment_method or "",
        customer_id=intent.customer or "",
        amount=money.amount,
        currency=money.currency.lower(),
    )


def view_of(payment: CardPayment, intent: PaymentIntent) -> PaymentIntentView:
    return payment_view(intent, payment.money)


def setup_view(intent: SetupIntent) -> SetupIntentView:
    return SetupIntentView(
        id=intent.id,
        client_secret=intent.client_secret or "",
        customer_id=intent.customer or "",
        payment_method_id=intent.payment_method or "",
        status=intent.status,
    )
