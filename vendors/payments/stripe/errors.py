"""What Stripe's error responses mean: a declined card, an invalid parameter, or a failure of the platform."""

from typing import Any

from streams.wire.codec import loads
from streams.wire.errors import InvalidOperation, InvalidParameter, ServiceError
from streams.wire.model import Model
from vendors.errors import Refused

_WITHHELD = frozenset({"lost_card", "stolen_card", "fraudulent", "pickup_card", "restricted_card"})
"""Reasons that must not be disclosed to a user."""
FIELDS = {"amount": "amonut", "currency": "currency", "receipt_email": "email"}
"""The fields of requests that are sent to Stripe under other names."""


class CardDeclined(InvalidOperation):
    """The card was declined. `extra.code` has the reason, such as `insufficient_funds`."""

    def __init__(self, code: str) -> None:
        shown = "card_declined" if code in _WITHHELD else code
        super().__init__("the card was declined", extra={"code": shown})


class StripeError(Model):
    type: str = ""
    code: str = ""
    decline_code: str = ""
    message: str = ""
    param: str | None = None
    payment_intent: dict[str, Any] | None = None
    setup_intent: dict[str, Any] | None = None


def error_in(refused: Refused) -> StripeError:
    """Return the error object of a response, which is empty if the body has none."""
    try:
        body = loads(refused.body)
    except ValueError:
        return StripeError()
    error = body.get("error") if isinstance(body, dict) else None
    if not isinstance(error, dict):
        return StripeError()
    known = {
        name: error[name]
        for name in ("type", "code", "decline_code", "message", "param")
        if isinstance(error.get(name), str)
    }
    intents = {
        name: error[name] for name in ("payment_intent", "setup_intent") if isinstance(error.get(name), dict)
    }
    return StripeError(**known, **intents)


def lacks_customer(refused: Refused) -> bool:
    """Return whether the customer of a call was deleted."""
    error = error_in(refused)
    names_it = error.param == "customer" or error.message.startswith("No such customer")
    return error.code == "resource_missing" and names_it


def lacks_object(refused: Refused) -> bool:
    """Return whether Stripe has no object with the id of a call."""
    return refused.vendor_status == 404 and error_in(refused).code == "resource_missing"


def meaning_of(refused: Refused) -> ServiceError:
    """Return the error for clients: `CardDeclined`, `InvalidParameter` if they sent the field, or `refused`."""
    error = error_in(refused)
    if refused.vendor_status == 409:  # Another call with the same key, or for the same object, is running.
        refused.retryable = True
    if refused.vendor_status == 402:
        return CardDeclined(error.decline_code or error.code or "card_declined")
    if refused.vendor_status == 400 and error.type == "invalid_request_error" and error.param in FIELDS:
        reason = f" ({error.code})" if error.code else ""
        return InvalidParameter(f"{FIELDS[error.param]} is refused by the card platform{reason}")
    return refused
