"""Invoices of the sandbox's Stripe, and refunds."""

from typing import Any

from vendors.sandbox.payments.stripe.store import Object, Store, invalid, missing, number, page_of

_DRAFT_S = 3600
"""How long the invoice of a renewal can be changed before it is charged."""


def new_invoice(
    store: Store, subscription: Object, *, reason: str, amount: int, start: int, end: int, draft: bool = False
) -> Object:
    """Create the invoice of a period. A draft is finalized later. An invoice over nothing is paid at once."""
    price = subscription["items"]["data"][0]["price"]
    line = {
        "object": "line_item", "amount": amount, "currency": price["currency"],
        "period": {"start": start, "end": end}, "subscription": subscription["id"],
        "pricing": {"type": "price_details", "price_details": {"price": price["id"]}},
    }  # fmt: skip
    details = {"subscription": subscription["id"], "metadata": subscription["metadata"]}
    invoice = store.new(
        "invoice", amount_due=amount, amount_paid=0, amount_remaining=amount, attempt_count=0,
        billing_reason=reason, currency=price["currency"], customer=subscription["customer"],
        status="draft" if draft else "open", auto_advance=True,
        automatically_finalizes_at=store.now() + _DRAFT_S if draft else None,
        lines={"object": "list", "data": [line], "has_more": False}, total=amount,
        parent={"type": "subscription_details", "subscription_details": details},
        confirmation_secret=None,
    )  # fmt: skip
    subscription["latest_invoice"] = invoice["id"]
    store.emit("invoice.created", invoice)
    return invoice


def drafts(store: Store, subscription: Object) -> list[Object]:
    """Return the invoices of a subscription that are to be finalized."""
    found = store.find("invoice", status="draft", auto_advance=True)
    return [invoice for invoice in found if is_of(invoice, subscription["id"])]


def finalize(store: Store, draft: Object) -> None:
    draft |= {"status": "open", "automatically_finalizes_at": None}
    store.emit("invoice.finalized", draft)


def is_of(invoice: Object, subscription: str) -> bool:
    return bool(invoice["parent"]["subscription_details"]["subscription"] == subscription)


def link(store: Store, invoice: Object, intent: Object) -> None:
    """Let a payment pay an invoice."""
    secret = {"type": "payment_intent", "client_secret": intent["client_secret"]}
    invoice["confirmation_secret"] = secret
    store.new(
        "invoice_payment", invoice=invoice["id"], status="open", is_default=True, currency=invoice["currency"],
        amount_requested=invoice["amount_due"], amount_paid=None,
        payment={"type": "payment_intent", "payment_intent": intent["id"]},
    )  # fmt: skip


def payments(store: Store, params: Object) -> Object:
    intent = params.get("payment", {}).get("payment_intent")
    found = [
        payment
        for payment in store.find("invoice_payment")
        if params.get("invoice") in {None, payment["invoice"]}
        and intent in {None, payment["payment"]["payment_intent"]}
    ]
    return page_of(found, params, url="/v1/invoice_payments")


def paid_by(store: Store, intent: Object) -> None:
    """Mark the invoice that a payment pays as paid."""
    for payment in store.find("invoice_payment"):
        if payment["payment"]["payment_intent"] == intent["id"]:
            payment |= {"status": "paid", "amount_paid": intent["amount"]}
            pay(store, store.get("invoice", payment["invoice"]))


def pay(store: Store, invoice: Object) -> None:
    invoice |= {"status": "paid", "amount_paid": invoice["amount_due"], "amount_remaining": 0}
    subscription = store.get("subscription", invoice["parent"]["subscription_details"]["subscription"])
    if subscription["status"] in {"incomplete", "past_due", "unpaid"}:
        previous = {"status": subscription["status"]}
        subscription["status"] = "active"
        store.emit("customer.subscription.updated", subscription, previous=previous)
    store.emit("invoice.paid", invoice)


def list_invoices(store: Store, params: Object) -> Object:
    where = {name: params[name] for name in ("customer", "status") if name in params}
    found = store.find("invoice", **where)
    if "subscription" in params:
        found = [invoice for invoice in found if is_of(invoice, params["subscription"])]
    return page_of(found, params, url="/v1/invoices")


def refund(store: Store, params: Object) -> Object:
    if "payment_intent" in params:
        intent = store.get("payment_intent", params["payment_intent"], param="payment_intent")
        charge_id = intent["latest_charge"]
    else:
        charge_id = params.get("charge")
    if charge_id is None:
        raise missing("charge")
    charge = store.get("charge", charge_id, param="charge")
    left = charge["amount"] - charge["amount_refunded"]
    amount = number(params["amount"], param="amount") if "amount" in params else left
    if left == 0:
        raise invalid("Charge has already been refunded.", code="charge_already_refunded")
    if not 0 < amount <= left:
        raise invalid("Refund amount is greater than unrefunded amount on charge.", param="amount")
    charge["amount_refunded"] += amount
    charge["refunded"] = charge["amount_refunded"] == charge["amount"]
    made = store.new(
        "refund", amount=amount, charge=charge["id"], currency=charge["currency"], status="succeeded",
        payment_intent=charge["payment_intent"], reason=params.get("reason"),
        metadata=params.get("metadata", {}),
    )  # fmt: skip
    store.emit("refund.created", made)
    store.emit("charge.refunded", charge)
    return made


def of_payment(kind: str, store: Store, params: Object) -> Object:
    """List the refunds or disputes of a payment."""
    where: dict[str, Any] = {name: params[name] for name in ("payment_intent", "charge") if name in params}
    return page_of(store.find(kind, **where), params, url=f"/v1/{kind}s")
