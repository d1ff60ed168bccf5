"""Customers and payment methods of the sandbox's Stripe."""

from typing import Any

from vendors.sandbox.calls import Refusal
from vendors.sandbox.payments.stripe.cards import BY_NAME, BY_NUMBER, CODES, INCORRECT_NUMBER, TestCard
from vendors.sandbox.payments.stripe.store import Object, Store, invalid, missing, page_of

_MESSAGES = {
    "insufficient_funds": "Your card has insufficient funds.",
    "expired_card": "Your card has expired.",
    "incorrect_cvc": "Your card's security code is incorrect.",
    "processing_error": "An error occurred while processing your card. Try again in a little bit.",
    "authentication_required": "Your card was declined. This transaction requires authentication.",
}


def create_customer(store: Store, params: Object) -> Object:
    settings = params.get("invoice_settings", {})
    customer = store.new(
        "customer",
        email=params.get("email"),
        name=params.get("name"),
        metadata=params.get("metadata", {}),
        currency=None,
        default_source=None,
        delinquent=False,
        invoice_settings={"default_payment_method": None},
    )
    if method := params.get("payment_method"):
        attach(store, method, {"customer": customer["id"]})
    _set_default(store, customer, settings)
    store.emit("customer.created", customer)
    return customer


def update_customer(store: Store, id_: str, params: Object) -> Object:
    customer = store.get("customer", id_, param="customer")
    for name in ("email", "name"):
        if name in params:
            customer[name] = params[name] or None
    customer["metadata"] |= params.get("metadata", {})
    _set_default(store, customer, params.get("invoice_settings", {}))
    store.emit("customer.updated", customer)
    return customer


def delete_customer(store: Store, id_: str, _: Object) -> Object:
    """Delete a customer, of whom only the id can still be read. The cards are detached."""
    customer = store.get("customer", id_, param="customer")
    for method in store.find("payment_method", customer=id_):
        detach(store, method["id"], {})
    deleted = {"id": id_, "object": "customer", "deleted": True}
    customer.clear()
    customer |= deleted
    store.emit("customer.deleted", deleted)
    return deleted


def _set_default(store: Store, customer: Object, settings: Object) -> None:
    if "default_payment_method" not in settings:
        return
    name = settings["default_payment_method"] or None
    if name is not None:
        param = "invoice_settings[default_payment_method]"
        require_owner(store.get("payment_method", name, param=param), customer["id"])
    customer["invoice_settings"]["default_payment_method"] = name


def create_method(store: Store, params: Object) -> Object:
    if params.get("type") != "card":
        raise missing("type")
    given = params.get("card", {})
    for name in ("number", "exp_month", "exp_year"):
        if name not in given:
            raise missing(f"card[{name}]")
    card = BY_NUMBER.get(given["number"])
    if card is None:
        code = "incorrect_number" if given["number"] == INCORRECT_NUMBER else "invalid_number"
        raise Refusal(402, {"error": declined(code) | {"code": code, "param": "number"}})
    return _method(store, card, exp_month=int(given["exp_month"]), exp_year=int(given["exp_year"]))


def _method(store: Store, card: TestCard, *, exp_month: int = 12, exp_year: int = 2040) -> Object:
    last4 = card.number[-4:]
    made = store.new(
        "payment_method",
        type="card",
        customer=None,
        allow_redisplay="unspecified",
        billing_details={"address": None, "email": None, "name": None, "phone": None},
        card={
            "brand": card.brand, "country": "US", "exp_month": exp_month, "exp_year": exp_year,
            "fingerprint": f"sandbox{last4}", "funding": "credit", "last4": last4,
            "checks": {"cvc_check": "unchecked"}, "three_d_secure_usage": {"supported": True},
        },
    )  # fmt: skip
    store.card_numbers[made["id"]] = card.number
    return made


def method_of(store: Store, name: str, *, param: str = "payment_method") -> Object:
    """Return a payment method. The name of a test card creates a new one."""
    if name in BY_NAME:
        return _method(store, BY_NAME[name])
    return store.get("payment_method", name, param=param)


def card_of(store: Store, method: Object) -> TestCard:
    return BY_NUMBER[store.card_numbers[method["id"]]]


def require_owner(method: Object, customer: str | None) -> None:
    if method["customer"] not in {None, customer} or (customer is None and method["customer"] is not None):
        raise invalid("The payment method does not belong to the customer.", param="payment_method")


def attach(store: Store, id_: str, params: Object) -> Object:
    if "customer" not in params:
        raise missing("customer")
    store.get("customer", params["customer"], param="customer")
    method = method_of(store, id_)
    if method["customer"] not in {None, params["customer"]}:
        raise invalid("The payment method you provided has already been attached to a customer.")
    card = card_of(store, method)
    if card.declined and card.declines_setup:
        raise Refusal(402, {"error": declined(card.declined)})
    method["customer"] = params["customer"]
    store.emit("payment_method.attached", method)
    return method


def detach(store: Store, id_: str, _: Object) -> Object:
    method = store.get("payment_method", id_)
    method["customer"] = None
    store.emit("payment_method.detached", method)
    return method


def list_methods(store: Store, params: Object) -> Object:
    where = {name: params[name] for name in ("customer", "type") if name in params}
    return page_of(store.find("payment_method", **where), params, url="/v1/payment_methods")


def declined(reason: str) -> dict[str, Any]:
    """Return the error of a declined card."""
    error = {
        "type": "card_error",
        "code": reason if reason in CODES else "card_declined",
        "message": _MESSAGES.get(reason, "Your card was declined."),
        "doc_url": f"https://docs.stripe.com/error-codes/{reason}",
    }
    return error if reason in CODES - {"authentication_required"} else error | {"decline_code": reason}
