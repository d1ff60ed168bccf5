"""Prices and subscriptions of the sandbox's Stripe, which renew when its clock moves.

At the end of a period, Stripe begins the next one at once: the subscription is `active`, and the invoice is a
`draft`. Stripe finalizes and charges it about an hour later (https://docs.stripe.com/billing/subscriptions/overview
and https://docs.stripe.com/invoicing/integration/workflow-transitions). Only a charge that fails makes the
subscription `past_due`. A subscription ends with its period, or at the date `cancel_at`, which may be set without
`cancel_at_period_end` (`openapi/spec3.json` of stripe/openapi).
"""

from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from heapq import heappop, heappush
from typing import Any

from streams.wire.period import Period
from vendors.sandbox.calls import Refusal
from vendors.sandbox.payments.stripe import intents, invoices, methods
from vendors.sandbox.payments.stripe.methods import require_owner
from vendors.sandbox.payments.stripe.store import Object, Store, invalid, missing, number, page_of, truth

PRICES: Mapping[str, Any] = {
    "price_pro_month": {"currency": "usd", "unit_amount": 999, "interval": "month"},
    "price_pro_year": {"currency": "usd", "unit_amount": 9900, "interval": "year"},
}
"""The prices of the products of development servers."""
_MONTHS = {"month": 1, "year": 12}
_EXPIRES_S = 23 * 3600
"""A subscription whose first payment has not succeeded expires after this time."""
_BEHAVIORS = {"allow_incomplete", "default_incomplete", "error_if_incomplete", "pending_if_incomplete"}
_CREATE = frozenset({
    "cancel_at", "cancel_at_period_end", "customer", "default_payment_method", "expand", "items", "metadata",
    "off_session", "payment_behavior", "payment_settings", "trial_end", "trial_period_days",
})  # fmt: skip


def add_prices(store: Store) -> None:
    for id_, price in PRICES.items():
        _price(store, id_=id_, **price)


def create_price(store: Store, params: Object) -> Object:
    recurring = params.get("recurring", {})
    if "currency" not in params:
        raise missing("currency")
    if recurring.get("interval") not in _MONTHS:
        raise invalid("Invalid recurring[interval].", param="recurring[interval]")
    amount = number(params.get("unit_amount"), param="unit_amount")
    active = truth(params.get("active", "true"), param="active")
    return _price(
        store, currency=params["currency"], unit_amount=amount, interval=recurring["interval"], active=active
    )


def _price(
    store: Store, *, currency: str, unit_amount: int, interval: str, active: bool = True, id_: str | None = None
) -> Object:
    recurring = {"interval": interval, "interval_count": 1, "usage_type": "licensed"}
    return store.new(
        "price", id_=id_, active=active, currency=currency, unit_amount=unit_amount, type="recurring",
        recurring=recurring, product="prod_sandbox",
    )  # fmt: skip


def create(store: Store, params: Object) -> Object:
    unknown = sorted(params.keys() - _CREATE)
    if unknown:
        raise invalid(f"Received unknown parameter: {unknown[0]}", code="parameter_unknown", param=unknown[0])
    for name in ("customer", "items"):
        if name not in params:
            raise missing(name)
    behavior = params.get("payment_behavior", "allow_incomplete")
    if behavior not in _BEHAVIORS:
        raise invalid("Invalid payment_behavior.", param="payment_behavior")
    customer = store.get("customer", params["customer"], param="customer")
    price = store.get("price", params["items"][0].get("price", ""), param="items[0][price]")
    method = _method_of(store, params, customer)
    subscription = _new(store, params, customer, price=price, method=method)
    _set_end(store, subscription, params)
    store.emit("customer.subscription.created", subscription)
    _begin(store, subscription, pays=method is not None and behavior != "default_incomplete")
    if subscription["status"] == "incomplete" and behavior == "error_if_incomplete":
        raise Refusal(402, {"error": {"type": "card_error", "code": "card_declined", "message": "Declined."}})
    return subscription


def _method_of(store: Store, params: Object, customer: Object) -> str | None:
    name: str | None = params.get("default_payment_method")
    if name is None:
        default: str | None = customer["invoice_settings"]["default_payment_method"]
        return default
    method = store.get("payment_method", name, param="default_payment_method")
    if method["customer"] != customer["id"]:
        raise invalid("The customer does not have this payment method.", param="default_payment_method")
    return name


def _new(store: Store, params: Object, customer: Object, *, price: Object, method: str | None) -> Object:
    now = store.now()
    trial_end = number(params["trial_end"], param="trial_end") if "trial_end" in params else None
    if "trial_period_days" in params:
        trial_end = now + 86400 * number(params["trial_period_days"], param="trial_period_days")
    anchor = trial_end or now
    end = trial_end or _after(anchor, price, periods=1)
    item = store.new("subscription_item", price=price, quantity=1, current_period_start=now, current_period_end=end)
    return store.new(
        "subscription", customer=customer["id"], status="incomplete", billing_cycle_anchor=anchor,
        items={"object": "list", "data": [item], "has_more": False}, start_date=now, trial_end=trial_end,
        cancel_at_period_end=False, cancel_at=None, canceled_at=None, ended_at=None,
        default_payment_method=method if "default_payment_method" in params else None, latest_invoice=None,
        currency=price["currency"], pending_setup_intent=None, metadata=params.get("metadata", {}),
    )  # fmt: skip


def _begin(store: Store, subscription: Object, *, pays: bool) -> None:
    item = subscription["items"]["data"][0]
    in_trial = subscription["trial_end"] is not None
    invoice = invoices.new_invoice(
        store, subscription, reason="subscription_create", amount=0 if in_trial else item["price"]["unit_amount"],
        start=item["current_period_start"], end=item["current_period_end"],
    )  # fmt: skip
    if in_trial:
        subscription["status"] = "trialing"
        invoices.pay(store, invoice)
    else:
        store.periods[subscription["id"]] = 1
        _collect(store, subscription, invoice, pays=pays)


def _collect(store: Store, subscription: Object, invoice: Object, *, pays: bool = True) -> None:
    """Make the payment of an invoice, and charge the card if there is one."""
    intent = intents.new_payment(
        store,
        amount=invoice["amount_due"],
        currency=invoice["currency"],
        customer=subscription["customer"],
    )
    invoices.link(store, invoice, intent)
    customer = store.get("customer", subscription["customer"])
    default = customer["invoice_settings"]["default_payment_method"]
    method = subscription["default_payment_method"] or default
    if method is not None:
        intents.choose(store, intent, method)
    if not pays or method is None:
        return
    with suppress(Refusal):
        intents.confirm_payment(store, intent["id"], {"off_session": "true"})
    if intent["status"] != "succeeded":
        store.emit("invoice.payment_failed", invoice)


def update(store: Store, id_: str, params: Object) -> Object:
    subscription = store.get("subscription", id_)
    if subscription["status"] in {"canceled", "incomplete_expired"}:
        raise invalid("A canceled subscription can only update its cancellation_details and metadata.")
    if "default_payment_method" in params:
        method = store.get("payment_method", params["default_payment_method"], param="default_payment_method")
        require_owner(method, subscription["customer"])
        subscription["default_payment_method"] = method["id"]
    _set_end(store, subscription, params)
    subscription["metadata"] |= params.get("metadata", {})
    store.emit("customer.subscription.updated", subscription)
    return subscription


def _set_end(store: Store, subscription: Object, params: Object) -> None:
    """Cancel a subscription at the end of its period or at a date, or let it renew again."""
    if "cancel_at_period_end" in params and "cancel_at" in params:
        raise invalid("You may only specify one of these parameters: cancel_at, cancel_at_period_end.")
    if "cancel_at_period_end" in params:
        cancels = truth(params["cancel_at_period_end"], param="cancel_at_period_end")
        end = subscription["items"]["data"][0]["current_period_end"] if cancels else None
        subscription |= {"cancel_at_period_end": cancels, "cancel_at": end}
    elif "cancel_at" in params:
        end = number(params["cancel_at"], param="cancel_at") if params["cancel_at"] else None
        if end is not None and end <= store.now():
            raise invalid("The cancel_at timestamp must be in the future.", param="cancel_at")
        subscription |= {"cancel_at_period_end": False, "cancel_at": end}
    else:
        return
    subscription["canceled_at"] = None if subscription["cancel_at"] is None else store.now()


def cancel(store: Store, id_: str, _: Object) -> Object:
    subscription = store.get("subscription", id_)
    if subscription["status"] in {"canceled", "incomplete_expired"}:
        raise invalid("This subscription is already canceled.", code="resource_missing")
    return _end(store, subscription, status="canceled")


def delete_customer(store: Store, id_: str, params: Object) -> Object:
    """Delete a customer, whose subscriptions end."""
    for subscription in store.find("subscription", customer=id_):
        if subscription["status"] not in {"canceled", "incomplete_expired"}:
            _end(store, subscription, status="canceled")
    return methods.delete_customer(store, id_, params)


def _end(store: Store, subscription: Object, *, status: str) -> Object:
    subscription |= {"status": status, "ended_at": store.now()}
    subscription["canceled_at"] = subscription["canceled_at"] or store.now()
    for draft in invoices.drafts(store, subscription):
        draft["auto_advance"] = False
    store.emit("customer.subscription.deleted", subscription)
    return subscription


def list_subscriptions(store: Store, params: Object) -> Object:
    where = {"customer": params["customer"]} if "customer" in params else {}
    found = store.find("subscription", **where)
    match params.get("status"):
        case None:
            found = [
                subscription
                for subscription in found
                if subscription["status"] not in {"canceled", "incomplete_expired"}
            ]
        case str(status) if status != "all":
            found = [subscription for subscription in found if subscription["status"] == status]
    return page_of(found, params, url="/v1/subscriptions")


def advance(store: Store, *, by_s: int) -> None:
    """Move the clock, and process in order the subscriptions and invoices that become due."""
    until = store.now() + by_s
    due: list[tuple[int, int, Object, Object | None]] = []
    for position, subscription in enumerate(store.find("subscription")):
        _push_next(store, due, position, subscription)
    while due and due[0][0] <= until:
        at, position, subscription, draft = heappop(due)
        store.offset_s += max(0, at - store.now())
        if draft is None:
            _renew(store, subscription)
        else:
            _charge(store, subscription, draft)
        _push_next(store, due, position, subscription)
    store.offset_s += until - store.now()


def _push_next(
    store: Store, due: list[tuple[int, int, Object, Object | None]], position: int, subscription: Object
) -> None:
    """Push when something happens to a subscription, and the invoice that is charged then, if that is it."""
    if subscription["status"] == "incomplete":
        heappush(due, (subscription["created"] + _EXPIRES_S, position, subscription, None))
    elif subscription["status"] in {"trialing", "active", "past_due"}:
        end = subscription["items"]["data"][0]["current_period_end"]
        at, draft = min(end, subscription["cancel_at"] or end), None
        for waiting in invoices.drafts(store, subscription):
            if waiting["automatically_finalizes_at"] < at:
                at, draft = waiting["automatically_finalizes_at"], waiting
        heappush(due, (at, position, subscription, draft))


def _renew(store: Store, subscription: Object) -> None:
    if subscription["status"] == "incomplete":
        _end(store, subscription, status="incomplete_expired")
        return
    if subscription["cancel_at"] is not None and subscription["cancel_at"] <= store.now():
        _end(store, subscription, status="canceled")
        return
    item = subscription["items"]["data"][0]
    periods = store.periods[subscription["id"]] = store.periods.get(subscription["id"], 0) + 1
    anchor = subscription["billing_cycle_anchor"]
    start = item["current_period_end"]
    end = _after(anchor, item["price"], periods=periods)
    item |= {"current_period_start": start, "current_period_end": end}
    if subscription["status"] == "trialing":
        subscription["status"] = "active"
    invoices.new_invoice(
        store, subscription, reason="subscription_cycle", amount=item["price"]["unit_amount"], start=start, end=end,
        draft=True,
    )  # fmt: skip
    store.emit("customer.subscription.updated", subscription)


def _charge(store: Store, subscription: Object, draft: Object) -> None:
    """Finalize an invoice and charge the card. If that fails, the subscription is `past_due`."""
    invoices.finalize(store, draft)
    _collect(store, subscription, draft)
    if draft["status"] != "paid" and subscription["status"] == "active":
        subscription["status"] = "past_due"
        store.emit("customer.subscription.updated", subscription, previous={"status": "active"})


def _after(anchor: int, price: Any, *, periods: int) -> int:
    """Return the end of a period after `anchor`."""
    months = _MONTHS[price["recurring"]["interval"]] * periods
    return int(Period(months, 0).after(datetime.fromtimestamp(anchor, UTC)).timestamp())
