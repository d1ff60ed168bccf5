"""What our client sends and reads, and what the sandbox answers, compared with the types of Stripe's package.

The client and the sandbox could otherwise agree with each other on something that Stripe does not have.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Literal, get_args, get_origin

import aiohttp
import pytest
from stripe._list_object import ListObject
from stripe._stripe_object import UntypedStripeObject

from streams.wire.model import Model
from tests.vendors.payments.stripe.stripe_types import (
    alternatives,
    calls,
    class_of,
    fields_of,
    has_fields,
    resolved,
    unlike,
)
from vendors.errors import VendorError
from vendors.payments.stripe import objects as stripe_objects
from vendors.payments.stripe.client import Stripe
from vendors.sandbox.server import Running

EARLIER_FIELDS = {
    # Of versions before 2025-03-31, in which localstripe answers.
    "Subscription.current_period_start",
    "Subscription.current_period_end",
    "Invoice.subscription",
}
OF_OUR_VERSION = {
    "POST /v1/payment_intents: /payment_method_types is unknown",
    "POST /v1/setup_intents: /payment_method_types is unknown",
}
"""What the version that the package describes has no longer."""
READ = {
    "Customer": "customer", "PaymentMethod": "payment_method", "PaymentIntent": "payment_intent", "Price": "price",
    "SetupIntent": "setup_intent", "Subscription": "subscription", "SubscriptionItem": "subscription_item",
    "Invoice": "invoice", "InvoiceLine": "line_item", "InvoicePayment": "invoice_payment", "Refund": "refund",
    "Dispute": "dispute", "Event": "event",
}  # fmt: skip
"""Our models of whole objects, and the names of the objects."""


async def send(sandbox: Running, method: str, path: str, **form: str) -> dict[str, Any]:
    """Call the platform as others than our client do."""
    async with (
        aiohttp.ClientSession(headers={"Authorization": "Bearer sandbox"}) as http,
        http.request(method, f"{sandbox.url}/stripe/{path}", **_fields(method, form)) as response,
    ):
        answer: dict[str, Any] = await response.json()
        return answer


def _fields(method: str, form: dict[str, str]) -> dict[str, Any]:
    return {"params": form} if method == "GET" else {"data": form}


async def use_everything(stripe: Stripe, sandbox: Running) -> None:
    """Make each call of the client at least once, with all of its parameters."""
    customer = (await stripe.create_customer("1", metadata={"uid": "1"})).id
    card = (await stripe.attach("2", "pm_card_visa", customer=customer)).id
    await stripe.set_default_method("3", customer, payment_method=card)
    await stripe.customer(customer)
    await stripe.cards(customer)
    await stripe.payment_method(card)
    payment: dict[str, Any] = {"amount": 199, "currency": "USD", "customer": customer, "metadata": {"a": "b"}}
    paid = await stripe.create_payment_intent("4", payment_method=card, confirm=True, email="a@b.c", **payment)
    open_ = await stripe.create_payment_intent("5", payment_method=None, confirm=False, email=None, **payment)
    declined = await stripe.create_payment_intent(
        "6", payment_method="pm_card_chargeCustomerFail", confirm=True, email=None, **payment
    )
    assert declined.status == "requires_payment_method"
    await stripe.confirm_payment_intent("7", open_.id, payment_method="pm_card_createDispute")
    await stripe.confirm_payment_intent("8", declined.id, payment_method="pm_card_authenticationRequired")
    await stripe.payment_intents(customer, after=declined.id)
    setup = await stripe.create_setup_intent("9", customer=customer)
    await stripe.confirm_setup_intent("10", setup.id, payment_method="pm_card_visa")
    await stripe.setup_intent(setup.id)
    bought: dict[str, Any] = {"customer": customer, "price": "price_pro_month", "metadata": {"c": "d"}}
    waiting = await stripe.create_subscription("11", payment_method=None, trial_end=None, **bought)
    trial = await stripe.create_subscription("12", payment_method=card, trial_end=4102444800, **bought)
    made = await stripe.create_subscription("13", payment_method=card, trial_end=None, **bought)
    await stripe.cancel_at_period_end("14", made.id)
    await stripe.set_subscription_method("15", made.id, payment_method=card)
    await stripe.cancel_now("16", waiting.id)
    await stripe.subscription(trial.id)
    await stripe.subscriptions(customer, after=made.id)
    [invoice] = await stripe.paid_invoices(made.id)
    await stripe.invoice(invoice.id)
    await stripe.payments_of_invoice(invoice.id)
    await stripe.payment_intent(paid.id)
    await stripe.invoices_paid_by(paid.id)
    await send(sandbox, "POST", "v1/refunds", payment_intent=paid.id, amount="99")
    await stripe.refunds(paid.id)
    [dispute] = await stripe.disputes(open_.id)
    for status in ("under_review", "won"):
        await send(sandbox, "POST", "_sandbox/dispute", payment_intent=open_.id, status=status)
    assert dispute.payment_intent == open_.id
    await stripe.events(since=1, after=(await stripe.events(since=1, after=None)).data[-1]["id"])


async def test_our_requests_are_published(stripe: Stripe, sandbox: Running) -> None:
    await use_everything(stripe, sandbox)

    problems, made = set(), set()
    for entry in sandbox.bill.since(0):
        call = f"{entry.asked['method']} /v1/{entry.asked['path']}"
        if (fact := calls().get(call)) is None:
            problems.add(f"{call} is unknown")
            continue
        made.add(call)
        found = unlike(entry.asked["params"], fact.params, is_form=True)
        problems |= {f"{call}: {problem}" for problem in found}
    assert problems == OF_OUR_VERSION
    assert len(made) == 25


async def test_the_answers_of_the_sandbox_are_published(stripe: Stripe, sandbox: Running) -> None:
    await use_everything(stripe, sandbox)
    await send(sandbox, "POST", "v1/webhook_endpoints", url="http://127.0.0.1:1", **{"enabled_events[]": "none"})
    lists = (
        *("payment_intents", "payment_methods", "subscriptions", "invoices", "invoice_payments"),
        *("refunds", "disputes", "events", "webhook_endpoints"),
    )

    problems, kinds = set(), set()
    for path in lists:
        answer = await send(sandbox, "GET", f"v1/{path}", limit="100")
        problems |= {f"{path}: {problem}" for problem in unlike(answer, calls()[f"GET /v1/{path}"].response)}
        objects = answer["data"] + [event["data"]["object"] for event in answer["data"] if path == "events"]
        for about in objects:
            kinds.add(about["object"])
            problems |= {f"{about['object']}: {problem}" for problem in unlike(about, class_of(about["object"]))}
    assert sorted(problems) == []
    assert kinds > {"customer", "charge", "setup_intent", "payment_method", "invoice", "dispute", "refund"}


async def test_errors_are_published(stripe: Stripe, sandbox: Running) -> None:
    customer = (await stripe.create_customer("1", metadata={})).id
    errors = [
        await send(sandbox, "GET", "v1/payment_intents/pi_unknown"),
        await send(sandbox, "POST", "v1/payment_intents", currency="usd"),
        await send(sandbox, "POST", "v1/payment_methods/pm_card_visa_chargeDeclined/attach", customer=customer),
        await send(
            sandbox, "POST", "v1/payment_intents", amount="199", currency="usd", confirm="true",
            payment_method="pm_card_visa_chargeDeclined",
        ),
    ]  # fmt: skip
    problems = [problem for error in errors for problem in unlike(error["error"], "ErrorObject")]
    assert problems == []
    with pytest.raises(VendorError):
        await stripe.payment_intent("pi_unknown")


def test_the_fields_that_we_read_are_published() -> None:
    problems = set()
    for ours, theirs in READ.items():
        problems |= {*misread(getattr(stripe_objects, ours), class_of(theirs), ours)}
    assert problems == EARLIER_FIELDS


def misread(model: Any, kind: Any, path: str) -> Iterator[str]:
    """Yield the fields of our model that an object does not have, or that cannot hold one of its values."""
    published = fields_of(kind)
    for name, field in model.model_fields.items():
        if name not in published:
            yield f"{path}.{name}"
            continue
        held = [field.annotation, *get_args(field.annotation)]
        ours = next((hint for hint in held if isinstance(hint, type) and issubclass(hint, Model)), None)
        for alternative in alternatives(published[name]):
            if ours is not None and get_origin(alternative) is ListObject:
                [item] = get_args(ours.model_fields["data"].annotation)
                yield from misread(item, resolved(get_args(alternative)[0]), f"{path}.{name}")
            elif ours is not None and has_fields(alternative):
                yield from misread(ours, alternative, f"{path}.{name}")
            elif not (has_fields(alternative) or is_held(alternative, held)):
                yield f"{path}.{name} may be {alternative}"


def is_held(kind: Any, held: Sequence[Any]) -> bool:
    """Return whether one of our types holds the values of a published type, apart from objects."""
    origin = get_origin(kind) or kind
    if origin is Literal:
        return {type(value) for value in get_args(kind)} <= {*held}
    return origin in held or (origin is UntypedStripeObject and dict in {get_origin(hint) for hint in held})


def test_the_comparison_finds_what_is_not_published() -> None:
    create = calls()["POST /v1/payment_intents"].params
    form = {"amount": "1.5", "confirm": "yes", "items": [], "capture_method": "never"}
    assert sorted(unlike(form, create, is_form=True)) == [
        "/amount is '1.5'", "/capture_method is 'never'", "/confirm is 'yes'", "/currency is missing",
        "/items is unknown",
    ]  # fmt: skip
    intent = {"status": "paid", "metadata": {"a": 1}, "payment_method": {"id": 1}, "charges": []}
    assert sorted(unlike(intent, class_of("payment_intent"))) == [
        "/charges is unknown", "/metadata/a is 1", "/payment_method/id is 1", "/status is 'paid'",
    ]  # fmt: skip
