"""Stripe's API: customers, cards, payments, subscriptions, refunds and the list of events.

Each method makes one call. Amounts are in the platform's unit, times are Unix seconds. `key` is the idempotency
key, which is stored before the call, and `KEYS_KEPT` is how long Stripe recognizes it. Lists begin with the newest
object, and `after` is the last object of the page before.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from vendors.objects import VendorObject
from vendors.payments.stripe.calls import StripeCalls, part
from vendors.payments.stripe.forms import Value
from vendors.payments.stripe.objects import (
    Customer,
    Dispute,
    Invoice,
    InvoicePayment,
    Page,
    PaymentIntent,
    PaymentMethod,
    Price,
    Refund,
    SetupIntent,
    Subscription,
)

BASE_URL = "https://api.stripe.com"
KEYS_KEPT = timedelta(hours=23)
"""How long a key is sure to return the result of its first call. Stripe forgets keys after at least 24 hours."""
_PAGE = 100


class EventPage(VendorObject):
    """Events as they were sent, the newest first."""

    data: list[Any]
    has_more: bool = False


class Stripe(StripeCalls):
    async def create_customer(self, key: str, *, metadata: Mapping[str, str]) -> Customer:
        return await self.post("customers", key, {"metadata": metadata}, Customer)

    async def customer(self, customer: str) -> Customer:
        return await self.get(f"customers/{part(customer)}", {}, Customer)

    async def set_default_method(self, key: str, customer: str, *, payment_method: str) -> Customer:
        """Set the payment method of new invoices."""
        fields: Mapping[str, Value] = {"invoice_settings": {"default_payment_method": payment_method}}
        return await self.post(f"customers/{part(customer)}", key, fields, Customer)

    async def cards(self, customer: str) -> list[PaymentMethod]:
        """Return the cards of a customer, the most recently created one first."""
        query: Mapping[str, Value] = {"customer": customer, "type": "card", "limit": _PAGE}
        page = await self.get("payment_methods", query, Page[PaymentMethod])
        return sorted(page.data, key=lambda card: -card.created)

    async def payment_method(self, payment_method: str) -> PaymentMethod:
        return await self.get(f"payment_methods/{part(payment_method)}", {}, PaymentMethod)

    async def attach(self, key: str, payment_method: str, *, customer: str) -> PaymentMethod:
        """Attach a payment method to a customer. Raises `CardDeclined`. A name of a test card creates one."""
        path = f"payment_methods/{part(payment_method)}/attach"
        return await self.post(path, key, {"customer": customer}, PaymentMethod)

    async def create_payment_intent(
        self,
        key: str,
        *,
        amount: int,
        currency: str,
        customer: str | None,
        payment_method: str | None,
        confirm: bool,
        email: str | None,
        metadata: Mapping[str, str],
    ) -> PaymentIntent:
        """Create a payment. With `confirm`, the card is charged at once. A declined one is not an error."""
        fields: Mapping[str, Value] = {
            "amount": amount,
            "currency": currency.lower(),
            "customer": customer,
            "payment_method": payment_method,
            "payment_method_types": ["card"],
            "confirm": True if confirm else None,
            "off_session": True if confirm else None,
            "receipt_email": email,
            "metadata": metadata,
        }
        return await self.post_intent("payment_intents", key, fields, PaymentIntent)

    async def payment_intent(self, intent: str) -> PaymentIntent:
        return await self.get(f"payment_intents/{part(intent)}", {}, PaymentIntent)

    async def payment_intents(self, customer: str, *, after: str | None = None) -> Page[PaymentIntent]:
        query: Mapping[str, Value] = {"customer": customer, "starting_after": after, "limit": _PAGE}
        return await self.get("payment_intents", query, Page[PaymentIntent])

    async def confirm_payment_intent(self, key: str, intent: str, *, payment_method: str | None) -> PaymentIntent:
        path = f"payment_intents/{part(intent)}/confirm"
        return await self.post_intent(path, key, {"payment_method": payment_method}, PaymentIntent)

    async def cancel_payment_intent(self, key: str, intent: str) -> PaymentIntent:
        """Cancel a payment that was not made yet, so that nobody can make it."""
        return await self.post(f"payment_intents/{part(intent)}/cancel", key, {}, PaymentIntent)

    async def create_setup_intent(self, key: str, *, customer: str) -> SetupIntent:
        fields: Mapping[str, Value] = {
            "customer": customer,
            "usage": "off_session",
            "payment_method_types": ["card"],
        }
        return await self.post("setup_intents", key, fields, SetupIntent)

    async def setup_intent(self, intent: str) -> SetupIntent:
        return await self.get(f"setup_intents/{part(intent)}", {}, SetupIntent)

    async def confirm_setup_intent(self, key: str, intent: str, *, payment_method: str) -> SetupIntent:
        path = f"setup_intents/{part(intent)}/confirm"
        return await self.post_intent(path, key, {"payment_method": payment_method}, SetupIntent)

    async def price(self, price: str) -> Price:
        return await self.get(f"prices/{part(price)}", {}, Price)

    async def create_subscription(
        self,
        key: str,
        *,
        customer: str,
        price: str,
        payment_method: str | None,
        trial_end: int | None,
        metadata: Mapping[str, str],
    ) -> Subscription:
        """Create a subscription. If its first payment fails, or there is no payment method, it is `incomplete`."""
        fields: Mapping[str, Value] = {
            "customer": customer,
            "items": [{"price": price}],
            "default_payment_method": payment_method,
            "payment_behavior": "default_incomplete" if payment_method is None else "allow_incomplete",
            "payment_settings": {
                "payment_method_types": ["card"],
                "save_default_payment_method": "on_subscription",
            },
            "off_session": None if payment_method is None else True,
            "trial_end": trial_end,
            "metadata": metadata,
        }
        return await self.post("subscriptions", key, fields, Subscription)

    async def subscription(self, subscription: str) -> Subscription:
        return await self.get(f"subscriptions/{part(subscription)}", {}, Subscription)

    async def subscriptions(self, customer: str, *, after: str | None = None) -> Page[Subscription]:
        """Return subscriptions of a customer, also those that have ended."""
        query: Mapping[str, Value] = {
            "customer": customer,
            "status": "all",
            "starting_after": after,
            "limit": _PAGE,
        }
        return await self.get("subscriptions", query, Page[Subscription])

    async def cancel_at_period_end(self, key: str, subscription: str) -> Subscription:
        path = f"subscriptions/{part(subscription)}"
        return await self.post(path, key, {"cancel_at_period_end": True}, Subscription)

    async def resume(self, key: str, cancelled: Subscription) -> Subscription:
        """Let a subscription that was cancelled renew. Stripe accepts one of the two fields in a call."""
        by_period = cancelled.cancel_at_period_end
        fields: Mapping[str, Value] = {"cancel_at_period_end": False} if by_period else {"cancel_at": ""}
        return await self.post(f"subscriptions/{part(cancelled.id)}", key, fields, Subscription)

    async def cancel_now(self, key: str, subscription: str) -> Subscription:
        return await self.delete(f"subscriptions/{part(subscription)}", key, Subscription)

    async def set_subscription_method(self, key: str, subscription: str, *, payment_method: str) -> Subscription:
        path = f"subscriptions/{part(subscription)}"
        return await self.post(path, key, {"default_payment_method": payment_method}, Subscription)

    async def paid_invoices(self, subscription: str) -> list[Invoice]:
        """Return the last paid invoices of a subscription, the newest first."""
        query: Mapping[str, Value] = {"subscription": subscription, "status": "paid", "limit": _PAGE}
        return (await self.get("invoices", query, Page[Invoice])).data

    async def invoice(self, invoice: str) -> Invoice:
        return await self.get(f"invoices/{part(invoice)}", {}, Invoice)

    async def payments_of_invoice(self, invoice: str) -> list[InvoicePayment]:
        return (await self.get("invoice_payments", {"invoice": invoice}, Page[InvoicePayment])).data

    async def invoices_paid_by(self, intent: str) -> list[InvoicePayment]:
        """Return the invoice that a payment pays, in a list."""
        query: Mapping[str, Value] = {"payment": {"type": "payment_intent", "payment_intent": intent}}
        return (await self.get("invoice_payments", query, Page[InvoicePayment])).data

    async def refunds(self, intent: str) -> list[Refund]:
        query: Mapping[str, Value] = {"payment_intent": intent, "limit": _PAGE}
        return (await self.get("refunds", query, Page[Refund])).data

    async def refund(
        self, key: str, intent: str, *, amount: int | None = None, metadata: Mapping[str, str]
    ) -> Refund:
        """Refund a part of a payment, or what is left of it. Error: `charge_already_refunded`."""
        fields: Mapping[str, Value] = {"payment_intent": intent, "amount": amount, "metadata": metadata}
        return await self.post("refunds", key, fields, Refund)

    async def disputes(self, intent: str) -> list[Dispute]:
        query: Mapping[str, Value] = {"payment_intent": intent, "limit": _PAGE}
        return (await self.get("disputes", query, Page[Dispute])).data

    async def events(self, *, since: int, after: str | None) -> EventPage:
        """Return events since a time."""
        query: Mapping[str, Value] = {"created": {"gte": since}, "starting_after": after, "limit": _PAGE}
        return await self.get("events", query, EventPage)
