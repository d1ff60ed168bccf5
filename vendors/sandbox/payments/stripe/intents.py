"""Payment intents and setup intents of the sandbox's Stripe."""

import secrets
from copy import deepcopy
from typing import Any

from streams.wire.money import EXPONENTS
from vendors.sandbox.calls import Refusal
from vendors.sandbox.payments.stripe import invoices, methods
from vendors.sandbox.payments.stripe.methods import card_of, declined, method_of, require_owner
from vendors.sandbox.payments.stripe.store import Object, Store, invalid, missing, number, page_of, truth

_MAX_AMOUNT = 99_999_999
_MIN_AMOUNT = 50
_CREATE = frozenset({
    "amount", "automatic_payment_methods", "capture_method", "confirm", "currency", "customer", "description",
    "error_on_requires_action", "expand", "metadata", "off_session", "payment_method", "payment_method_data",
    "payment_method_options", "payment_method_types", "receipt_email", "return_url", "setup_future_usage",
})  # fmt: skip
_OPEN = frozenset({"requires_payment_method", "requires_confirmation", "requires_action"})

_EVIDENCE_S = 7 * 86_400
"""How long evidence for a dispute is taken."""


def create_payment(store: Store, params: Object) -> Object:
    unknown = sorted(params.keys() - _CREATE)
    if unknown:
        raise invalid(f"Received unknown parameter: {unknown[0]}", code="parameter_unknown", param=unknown[0])
    for name in ("amount", "currency"):
        if name not in params:
            raise missing(name)
    confirm = truth(params.get("confirm", "false"), param="confirm")
    off_session = truth(params.get("off_session", "false"), param="off_session")
    if off_session and not confirm:
        raise invalid("off_session can only be used with confirm.", param="off_session")
    intent = new_payment(
        store,
        amount=_amount(params["amount"], currency=params["currency"]),
        currency=_currency(params["currency"]),
        customer=params.get("customer"),
        receipt_email=_email(params.get("receipt_email")),
        description=params.get("description"),
        setup_future_usage=params.get("setup_future_usage"),
        payment_method_types=params.get("payment_method_types", ["card"]),
        metadata=params.get("metadata", {}),
    )
    if "payment_method" in params:
        choose(store, intent, params["payment_method"])
    store.emit("payment_intent.created", intent)
    return confirm_payment(store, intent["id"], params) if confirm else intent


def new_payment(store: Store, *, amount: int, currency: str, customer: str | None, **more: Any) -> Object:
    if customer is not None:
        store.get("customer", customer, param="customer")
    defaults: Object = {
        "amount_capturable": 0, "amount_received": 0, "canceled_at": None, "cancellation_reason": None,
        "capture_method": "automatic_async", "description": None, "last_payment_error": None,
        "latest_charge": None, "next_action": None, "payment_method": None, "payment_method_types": ["card"],
        "processing": None, "receipt_email": None, "setup_future_usage": None,
    }  # fmt: skip
    intent = store.new(
        "payment_intent", **defaults, status="requires_payment_method", amount=amount, currency=currency,
        customer=customer,
    )  # fmt: skip
    intent["client_secret"] = f"{intent['id']}_secret_{secrets.token_hex(12)}"
    intent |= more
    return intent


def choose(store: Store, intent: Object, name: str) -> None:
    """Set the payment method of an open intent."""
    method = method_of(store, name)
    require_owner(method, intent["customer"])
    intent |= {"payment_method": method["id"], "status": "requires_confirmation"}


def update_payment(store: Store, id_: str, params: Object) -> Object:
    intent = store.get("payment_intent", id_, param="intent")
    if intent["status"] not in _OPEN:
        raise unexpected(intent)
    if "amount" in params:
        intent["amount"] = _amount(params["amount"], currency=intent["currency"])
    if "payment_method" in params:
        choose(store, intent, params["payment_method"])
    intent["metadata"] |= params.get("metadata", {})
    return intent


def confirm_payment(store: Store, id_: str, params: Object) -> Object:
    intent = store.get("payment_intent", id_, param="intent")
    if intent["status"] not in _OPEN:
        raise unexpected(intent)
    if data := params.get("payment_method_data"):
        choose(store, intent, methods.create_method(store, data)["id"])
    elif name := params.get("payment_method"):
        choose(store, intent, name)
    if intent["payment_method"] is None:
        raise unexpected(intent)
    method = store.get("payment_method", intent["payment_method"])
    card, off_session = card_of(store, method), params.get("off_session") == "true"
    is_set_up = method["customer"] is not None
    if card.action == "always" or (card.action == "unless_set_up" and not is_set_up):
        if off_session:
            raise fail_payment(store, intent, "authentication_required")
        intent |= {"status": "requires_action", "next_action": {"type": "use_stripe_sdk", "use_stripe_sdk": {}}}
        store.emit("payment_intent.requires_action", intent)
        return intent
    return charge(store, intent)


def charge(store: Store, intent: Object) -> Object:
    """Charge the card of an intent. Raises a `Refusal` if it is declined."""
    method = store.get("payment_method", intent["payment_method"])
    card = card_of(store, method)
    if card.declined:
        raise fail_payment(store, intent, card.declined)
    made = store.new(
        "charge", amount=intent["amount"], amount_refunded=0, captured=True, currency=intent["currency"],
        customer=intent["customer"], disputed=False, paid=True, payment_intent=intent["id"],
        payment_method=method["id"], refunded=False, status="succeeded",
    )  # fmt: skip
    intent |= {
        "status": "succeeded", "amount_received": intent["amount"], "latest_charge": made["id"],
        "next_action": None, "last_payment_error": None,
    }  # fmt: skip
    if intent["setup_future_usage"] and intent["customer"]:
        method["customer"] = intent["customer"]
    store.emit("charge.succeeded", made)
    store.emit("payment_intent.succeeded", intent)
    invoices.paid_by(store, intent)
    if card.disputed:
        open_dispute(store, intent, status="needs_response")
    return intent


def fail_payment(store: Store, intent: Object, reason: str) -> Refusal:
    """Record a decline, and return the response."""
    method = store.get("payment_method", intent["payment_method"])
    error = declined(reason) | {"payment_method": deepcopy(method)}
    intent |= {
        "status": "requires_payment_method", "payment_method": None, "next_action": None,
        "last_payment_error": error,
    }  # fmt: skip
    store.emit("payment_intent.payment_failed", intent)
    return Refusal(402, {"error": {**error, "payment_intent": deepcopy(intent)}})


def cancel_payment(store: Store, id_: str, params: Object) -> Object:
    intent = store.get("payment_intent", id_, param="intent")
    if intent["status"] not in _OPEN:
        raise unexpected(intent)
    reason = params.get("cancellation_reason")
    intent |= {"status": "canceled", "canceled_at": store.now(), "cancellation_reason": reason}
    store.emit("payment_intent.canceled", intent)
    return intent


def list_payments(store: Store, params: Object) -> Object:
    where = {"customer": params["customer"]} if "customer" in params else {}
    return page_of(store.find("payment_intent", **where), params, url="/v1/payment_intents")


def open_dispute(store: Store, intent: Object, *, status: str, amount: int | None = None) -> Object:
    """Open a dispute of a payment, or of a part of it."""
    made = store.get("charge", intent["latest_charge"])
    made["disputed"] = True
    dispute = store.new(
        "dispute", amount=made["amount"] if amount is None else amount, charge=made["id"],
        currency=made["currency"], payment_intent=intent["id"], reason="fraudulent", status=status,
        evidence_details={"due_by": store.now() + _EVIDENCE_S, "has_evidence": False, "submission_count": 0},
    )  # fmt: skip
    store.emit("charge.dispute.created", dispute)
    return dispute


def create_setup(store: Store, params: Object) -> Object:
    if customer := params.get("customer"):
        store.get("customer", customer, param="customer")
    intent = store.new(
        "setup_intent", status="requires_payment_method", customer=customer, payment_method=None,
        usage=params.get("usage", "off_session"), last_setup_error=None, next_action=None,
        payment_method_types=params.get("payment_method_types", ["card"]), metadata=params.get("metadata", {}),
    )  # fmt: skip
    intent["client_secret"] = f"{intent['id']}_secret_{secrets.token_hex(12)}"
    store.emit("setup_intent.created", intent)
    return confirm_setup(store, intent["id"], params) if params.get("confirm") == "true" else intent


def confirm_setup(store: Store, id_: str, params: Object) -> Object:
    intent = store.get("setup_intent", id_, param="intent")
    if intent["status"] not in _OPEN:
        raise unexpected(intent)
    if data := params.get("payment_method_data"):
        method = methods.create_method(store, data)
    elif name := params.get("payment_method") or intent["payment_method"]:
        method = method_of(store, name)
    else:
        raise unexpected(intent)
    require_owner(method, intent["customer"])
    intent["payment_method"] = method["id"]
    if card_of(store, method).action != "never":
        intent |= {"status": "requires_action", "next_action": {"type": "use_stripe_sdk", "use_stripe_sdk": {}}}
        return intent
    return set_up(store, intent)


def set_up(store: Store, intent: Object) -> Object:
    """Attach the card of a setup intent. Raises a `Refusal` if it is declined."""
    method = store.get("payment_method", intent["payment_method"])
    card = card_of(store, method)
    if card.declined and card.declines_setup:
        error = declined(card.declined)
        intent |= {"status": "requires_payment_method", "payment_method": None, "last_setup_error": error}
        store.emit("setup_intent.setup_failed", intent)
        raise Refusal(402, {"error": {**error, "setup_intent": deepcopy(intent)}})
    method["customer"] = intent["customer"]
    intent |= {"status": "succeeded", "next_action": None, "last_setup_error": None}
    store.emit("setup_intent.succeeded", intent)
    return intent


def cancel_setup(store: Store, id_: str, params: Object) -> Object:
    intent = store.get("setup_intent", id_, param="intent")
    if intent["status"] not in _OPEN:
        raise unexpected(intent)
    intent |= {"status": "canceled", "cancellation_reason": params.get("cancellation_reason")}
    return intent


def authenticate(store: Store, intent: Object, *, success: bool) -> Object:
    """Finish the authentication of a card by its owner."""
    is_payment = intent["object"] == "payment_intent"
    if intent["status"] != "requires_action":
        raise unexpected(intent)
    if success:
        return charge(store, intent) if is_payment else set_up(store, intent)
    intent |= {"status": "requires_payment_method", "next_action": None, "payment_method": None}
    error = {
        "type": "invalid_request_error", "code": f"{intent['object']}_authentication_failure",
        "message": "The provided PaymentMethod has failed authentication.",
    }  # fmt: skip
    intent["last_payment_error" if is_payment else "last_setup_error"] = error
    store.emit("payment_intent.payment_failed" if is_payment else "setup_intent.setup_failed", intent)
    return intent


def unexpected(intent: Object) -> Refusal:
    name = intent["object"]
    status = intent["status"]
    message = f"This {name} could not be changed because it has a status of {status}."
    more: Object = {name: deepcopy(intent)}
    return invalid(message, code=f"{name}_unexpected_state", **more)


def _amount(text: Any, *, currency: str) -> int:
    amount = number(text, param="amount")
    if amount < 1:
        raise invalid(
            "This value must be greater than or equal to 1.", code="parameter_invalid_integer", param="amount"
        )
    if amount < _MIN_AMOUNT:
        raise invalid("Amount must be at least 50 cents.", code="amount_too_small", param="amount")
    if amount % 10 and EXPONENTS.get(currency.upper()) == 3:
        raise invalid("Amounts of three-decimal currencies must be multiples of 10.", param="amount")
    if amount > _MAX_AMOUNT:
        raise invalid("Amount must be no more than 99999999.", code="amount_too_large", param="amount")
    return amount


def _currency(text: str) -> str:
    if not (len(text) == 3 and text.isascii() and text.isalpha()):
        raise invalid(f"Invalid currency: {text}.", param="currency")
    return text.lower()


def _email(text: str | None) -> str | None:
    if text is not None and "@" not in text:
        raise invalid(f"Invalid email address: {text}", code="email_invalid", param="receipt_email")
    return text
