"""Finds the unpaid payment of a subscription's last invoice, and makes it with another card."""

from app.payments.cards.platform import CardPlatform
from app.payments.cards.subscription_creation import Payer, card_of
from storage.payments.cards.subscriptions import CardSubscription
from vendors.errors import Refused
from vendors.payments.stripe.errors import error_in
from vendors.payments.stripe.objects import PaymentIntent, Subscription

_UNPAID = frozenset({"incomplete", "past_due", "unpaid"})


async def open_payment(platform: CardPlatform, subscription: Subscription) -> PaymentIntent | None:
    """Return the payment of the last invoice, if it is not paid."""
    invoice = subscription.latest_invoice
    if invoice is None or subscription.status not in _UNPAID:
        return None
    payments = await platform.stripe.payments_of_invoice(invoice)
    names = [payment.payment.payment_intent for payment in payments if payment.payment.payment_intent is not None]
    return await platform.stripe.payment_intent(names[0]) if names else None


async def pay_with(
    platform: CardPlatform, row: CardSubscription, subscription: Subscription, payer: Payer, *, key: str
) -> None:
    """Pay the last invoice, if it is unpaid, with the card that the request names, if any.

    A declined card changes nothing. A card that has paid is also used for later invoices.
    """
    intent, customer, name = await open_payment(platform, subscription), row.customer_id, subscription.id
    if intent is None or customer is None:
        return
    method = await card_of(platform.stripe, customer, payer, key=key)
    if method is None or (intent.status == "requires_action" and intent.payment_method == method):
        return  # The bank is asking the owner of this card already.
    try:
        paid = await platform.stripe.confirm_payment_intent(f"{key}:pay", intent.id, payment_method=method)
    except Refused as refused:
        if error_in(refused).code != "payment_intent_unexpected_state":
            raise
        return  # It was paid meanwhile.
    if paid.status != "succeeded":
        return
    await platform.stripe.set_subscription_method(f"{key}:method", name, payment_method=method)
    await platform.stripe.set_default_method(f"{key}:default", customer, payment_method=method)
