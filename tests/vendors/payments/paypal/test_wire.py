"""What our client sends and what the sandbox answers, compared with PayPal's OpenAPI descriptions.

The client and the sandbox could otherwise agree with each other on something that PayPal does not have.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from streams.wire.codec import loads
from streams.wire.ids import new_id
from streams.wire.model import Model
from streams.wire.money import Money
from tests.vendors.payments.paypal.calls import Merchant
from vendors.payments.paypal.errors import PayPalRefused
from vendors.sandbox.payments.paypal.plans import MONTHLY, YEARLY

FACTS = loads(Path(__file__).with_name("openapi.json").read_bytes())
CALLS: dict[str, dict[str, Any]] = FACTS["calls"]
COLLECTIONS = re.compile(
    r"(/v1/billing/plans|/v1/billing/subscriptions|/v2/checkout/orders|/v2/payments/captures|/v2/payments/refunds"
    r"|/v1/payments/sale|/v1/payments/refund|/v1/payments/payouts)/[^/]+"
)


TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,), "integer": (int,), "number": (int, float), "boolean": (bool,), "object": (dict,),
    "array": (list,),
}  # fmt: skip


class Anything(Model, extra="allow"):
    """A whole response."""


def unlike(value: Any, fact: dict[str, Any], path: str = "") -> Iterator[str]:
    """Yield how `value` differs from what is published."""
    if (expected := type_of(fact)) and not (isinstance(value, TYPES[expected]) and is_plain(value, expected)):
        yield f"{path} is not of type {expected}"
    elif isinstance(value, dict) and "fields" in fact:
        yield from (f"{path}/{name} is missing" for name in fact.get("required", []) if name not in value)
        for name, inner in value.items():
            field = fact["fields"].get(name)
            yield from [f"{path}/{name} is unknown"] if field is None else unlike(inner, field, f"{path}/{name}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from unlike(item, fact.get("items", {}), f"{path}/{index}")
    elif "enum" in fact and value not in fact["enum"]:
        yield f"{path} is {value}"
    elif isinstance(value, str) and len(value) > fact.get("maxLength", len(value)):
        yield f"{path} is too long"
    elif isinstance(value, str) and re.search(fact.get("pattern", ""), value) is None:
        yield f"{path} is written in another way: {value}"


def type_of(fact: dict[str, Any]) -> str | None:
    return "object" if "fields" in fact else fact.get("type")


def is_plain(value: Any, expected: str) -> bool:
    """Return whether a number is not a boolean, which Python counts as one."""
    return expected == "boolean" or not isinstance(value, bool)


def call_of(method: str, path: str) -> str:
    """Return the call as the facts name it."""
    return f"{method} " + COLLECTIONS.sub(r"\1/{id}", path.removeprefix("/paypal"))


async def use_everything(shop: Merchant) -> None:
    """Make each call of the client at least once."""
    paypal = shop.paypal
    order = await shop.approved_order()
    (capture,) = (await paypal.capture_order(new_id(), order.id)).captures
    refund = await paypal.refund_capture(new_id(), capture.id, Money(50, "USD"))
    await paypal.order(order.id)
    await paypal.capture(capture.id)
    await paypal.capture_refund(refund.id)
    await paypal.plan(MONTHLY)
    made = await shop.subscribed()
    await shop.move_clock(40)
    payments = await shop.transactions(made.id)
    sale_refund = await paypal.refund_sale(new_id(), payments[0].id, Money(50, "USD"))
    await paypal.sale(payments[0].id)
    await paypal.sale_refund(sale_refund.id)
    await paypal.cancel_subscription(new_id(), made.id, reason="upgraded")
    await paypal.subscription(made.id)
    payout = await paypal.create_payout(
        new_id(), receiver="unregistered@example.test", amount=Money(987, "USD"), note="n", subject="s"
    )
    await paypal.payout(payout.id)
    await paypal.events(start=payments[0].time, end=payments[1].time)


async def test_our_requests_are_published(shop: Merchant):
    await use_everything(shop)

    asked = [entry.asked for entry in shop.sandbox.bill.since(0) if "path" in entry.asked]
    problems = []
    for request in asked:
        method = "POST" if request["key"] else "GET"
        call = call_of(method, request["path"])
        fact = CALLS[call]
        problems += [f"{call}: {problem}" for problem in unlike(request["body"], fact.get("request", {}))]
        problems += [f"{call}: query {name}" for name in request["query"] if name not in fact.get("query", [])]
    assert problems == []
    assert {call_of("POST" if request["key"] else "GET", request["path"]) for request in asked} >= {
        call for call in CALLS if "revise" not in call and "verify" not in call and call != "POST /v1/billing/plans"
    }


async def test_the_answers_of_the_sandbox_are_published(shop: Merchant):
    await use_everything(shop)
    await shop.move_clock(0)  # PayPal still remembers the keys.

    problems = []
    for request in [entry.asked for entry in shop.sandbox.bill.since(0) if "path" in entry.asked]:
        path, key = request["path"].removeprefix("/paypal"), request["key"]
        call = call_of("POST" if key else "GET", path)
        if "response" not in CALLS[call]:
            continue
        if key:
            answer = await shop.paypal.post(key, path, repeatable(request["body"]), Anything)
        else:
            answer = await shop.paypal.get(path, Anything, request["query"])
        problems += [f"{call}: {problem}" for problem in unlike(answer.model_dump(), CALLS[call]["response"])]
    assert sorted(set(problems)) == []


def repeatable(body: dict[str, Any]) -> dict[str, Any]:
    """Return a body that PayPal answers again as at first. It refuses the id of a batch that it knows."""
    header = body.get("sender_batch_header")
    return body if header is None else {**body, "sender_batch_header": {**header, "sender_batch_id": new_id()}}


async def test_the_answer_to_a_revision_is_published(shop: Merchant):
    made = await shop.subscribed()
    path = f"/v1/billing/subscriptions/{made.id}/revise"
    body = {"plan_id": YEARLY}

    answer = (await shop.paypal.post(new_id(), path, body, Anything)).model_dump()

    fact = CALLS["POST /v1/billing/subscriptions/{id}/revise"]
    assert [*unlike(body, fact["request"]), *unlike(answer, fact["response"])] == []


async def test_issues_by_which_we_decide_are_published(shop: Merchant):
    order = await shop.order()
    captured = await shop.approved_order()
    await shop.paypal.capture_order(new_id(), captured.id)
    declined = await shop.approved_order(fault="decline")
    pending = await shop.subscribe()
    path = f"/v1/billing/subscriptions/{pending.id}/cancel"
    issues = []

    for call in (
        shop.paypal.capture_order(new_id(), order.id),
        shop.paypal.capture_order(new_id(), captured.id),
        shop.paypal.capture_order(new_id(), declined.id),
        shop.paypal.command(new_id(), path, {"reason": "no longer wanted"}),
        shop.paypal.order("5O190127TN364715T"),
        shop.paypal.command(new_id(), path, {}),
    ):
        with pytest.raises(PayPalRefused) as raised:
            await call
        issues.append(raised.value.issue)

    assert issues == [
        "ORDER_NOT_APPROVED",
        "ORDER_ALREADY_CAPTURED",
        "INSTRUMENT_DECLINED",
        "SUBSCRIPTION_STATUS_INVALID",
        "INVALID_RESOURCE_ID",
        "MISSING_REQUIRED_PARAMETER",
    ]
    assert [issue for issue in issues if issue not in FACTS["issues"]] == []


def test_the_comparison_finds_what_is_written_in_another_way():
    refund = CALLS["POST /v2/payments/captures/{id}/refund"]["request"]
    plan = CALLS["POST /v1/billing/plans"]["request"]["fields"]["billing_cycles"]

    assert list(unlike({"amount": {"currency_code": "USD", "value": 1.5}}, refund)) == [
        "/amount/value is not of type string"
    ]
    assert list(unlike({"amount": {"currency_code": "USD", "value": "1,50"}}, refund)) == [
        "/amount/value is written in another way: 1,50"
    ]
    assert list(unlike({"amount": "1.50 USD"}, refund)) == ["/amount is not of type object"]
    cycle = {"frequency": {"interval_unit": "MONTH", "interval_count": "1"}, "tenure_type": "REGULAR"}
    assert list(unlike([{**cycle, "sequence": True}], plan)) == [
        "/0/frequency/interval_count is not of type integer",
        "/0/sequence is not of type integer",
    ]
    assert list(unlike({}, plan)) == [" is not of type array"]


def test_the_comparison_finds_what_is_not_published():
    fact = CALLS["POST /v2/checkout/orders"]["request"]

    assert list(unlike({"intent": "SELL", "purchase_unit": []}, fact)) == [
        "/purchase_units is missing",
        "/intent is SELL",
        "/purchase_unit is unknown",
    ]
