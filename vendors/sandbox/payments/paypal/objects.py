"""The calls to the sandbox's PayPal: one row each, and the handlers that need no state beyond the merchant's."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal
from urllib.parse import urlencode

from streams.wire.codec import from_rfc3339
from vendors.sandbox.payments.paypal import disputes, orders, payouts, plans, sales, subscriptions
from vendors.sandbox.payments.paypal.records import Order, Subscription
from vendors.sandbox.payments.paypal.state import Event, Merchant
from vendors.sandbox.payments.paypal.subscription_objects import to_object as to_subscription
from vendors.sandbox.payments.paypal.webhooks import is_genuine
from vendors.sandbox.payments.paypal.wire import new_id, not_found, refusal, time_text

_PAGE = 10
_MAX_PAGE = 500


@dataclass(slots=True)
class Asked:
    """A call by a merchant."""

    merchant: Merchant
    ids: Mapping[str, str]
    """The ids in its path."""
    query: Mapping[str, str]
    body: dict[str, Any]
    key: str
    """Its `PayPal-Request-Id`, or an empty string."""
    raw: bytes
    times_out: bool = False
    """Whether the response is lost after the effect. Set by a handler."""


@dataclass(frozen=True, slots=True)
class Row:
    method: Literal["GET", "POST"]
    path: str
    stage: str
    handle: Callable[[Asked], Any]
    """Returns the object to answer with, or `None` for an empty answer."""
    status: int = 200
    kept: timedelta | None = None
    """How long a repeat with the same request id gets the same answer."""
    minimal: bool = False
    """Whether the answer has only id, status and links unless the call asks for more."""


def _create_subscription(asked: Asked) -> dict[str, Any]:
    made = subscriptions.create(asked.merchant, asked.body)
    return to_subscription(asked.merchant, made)


def _get_subscription(asked: Asked) -> dict[str, Any]:
    fields = asked.query.get("fields", "").split(",")
    return to_subscription(asked.merchant, _subscription(asked), fields=fields)


def _subscription(asked: Asked) -> Subscription:
    return subscriptions.subscription_of(asked.merchant, asked.ids["id"])


def _transactions(asked: Asked) -> dict[str, Any]:
    if not {"start_time", "end_time"} <= asked.query.keys():
        raise refusal(400, "MISSING_REQUIRED_PARAMETER", "A required field is missing.", at="start_time")
    start, end = asked.query["start_time"], asked.query["end_time"]
    return {
        "transactions": subscriptions.transactions(_subscription(asked), asked.merchant, start, end),
        "links": [],
    }


def _create_order(asked: Asked) -> dict[str, Any]:
    return orders.to_object(asked.merchant, orders.create(asked.merchant, asked.body, has_key=bool(asked.key)))


def _order(asked: Asked) -> Order:
    return orders.order_of(asked.merchant, asked.ids["id"])


def _capture_order(asked: Asked) -> dict[str, Any]:
    order = _order(asked)
    orders.capture(asked.merchant, order)
    asked.times_out, order.times_out = order.times_out, False
    return orders.to_object(asked.merchant, order)


def _get_capture(asked: Asked) -> dict[str, Any]:
    return sales.capture_object(asked.merchant, sales.payment_of(asked.merchant, asked.ids["id"], sale=False))


def _refund_capture(asked: Asked) -> dict[str, Any]:
    refund = sales.refund_capture(asked.merchant, asked.ids["id"], asked.body)
    return sales.capture_refund_object(asked.merchant, refund)


def _get_capture_refund(asked: Asked) -> dict[str, Any]:
    return sales.capture_refund_object(asked.merchant, sales.refund_of(asked.merchant, asked.ids["id"], sale=False))


def _get_sale(asked: Asked) -> dict[str, Any]:
    return sales.sale_object(asked.merchant, sales.payment_of(asked.merchant, asked.ids["id"], sale=True))


def _refund_sale(asked: Asked) -> dict[str, Any]:
    return sales.sale_refund_object(asked.merchant, sales.refund_sale(asked.merchant, asked.ids["id"], asked.body))


def _get_sale_refund(asked: Asked) -> dict[str, Any]:
    return sales.sale_refund_object(asked.merchant, sales.refund_of(asked.merchant, asked.ids["id"], sale=True))


def _get_dispute(asked: Asked) -> dict[str, Any]:
    return disputes.to_object(asked.merchant, disputes.dispute_of(asked.merchant, asked.ids["id"]))


def _get_payout(asked: Asked) -> dict[str, Any]:
    return payouts.to_object(asked.merchant, payouts.payout_of(asked.merchant, asked.ids["id"]))


def _get_payout_item(asked: Asked) -> dict[str, Any]:
    for payout in asked.merchant.payouts.values():
        for item in payouts.to_object(asked.merchant, payout)["items"]:
            if item["payout_item_id"] == asked.ids["id"]:
                return dict(item)
    raise not_found()


def _create_webhook(asked: Asked) -> dict[str, Any]:
    webhook_id = new_id()
    asked.merchant.hooks[webhook_id] = asked.body["url"]
    return _webhook(asked.merchant, webhook_id, asked.body["url"])


def _webhook(merchant: Merchant, webhook_id: str, url: str) -> dict[str, Any]:
    link = merchant.link("self", f"/v1/notifications/webhooks/{webhook_id}")
    return {"id": webhook_id, "url": url, "event_types": [{"name": "*"}], "links": [link]}


def _list_webhooks(asked: Asked) -> dict[str, Any]:
    return {"webhooks": [_webhook(asked.merchant, *webhook) for webhook in asked.merchant.hooks.items()]}


def _list_events(asked: Asked) -> dict[str, Any]:
    query = asked.query
    size, number = min(int(query.get("page_size", _PAGE)), _MAX_PAGE), int(query.get("page", 1))
    found = [event for event in reversed(asked.merchant.events) if _matches(event, query)]
    path = "/v1/notifications/webhooks-events"
    links = [asked.merchant.link("self", f"{path}?{urlencode(query)}")]
    if len(found) > size * number:
        links.append(asked.merchant.link("next", f"{path}?{urlencode({**query, 'page': number + 1})}"))
    page = found[size * (number - 1) : size * number]
    events = [*asked.merchant.garbage, *(event.body for event in page)]
    return {"events": events, "count": len(events), "links": links}


def _matches(event: Event, query: Mapping[str, str]) -> bool:
    # Events have times without fractions, so a bound within their second counts as that second.
    return (
        _second(query.get("start_time")) <= time_text(event.at) <= (_second(query.get("end_time")) or "9999")
        and query.get("event_type") in {None, event.body["event_type"]}
        and query.get("transaction_id") in {None, event.body["resource"].get("id")}
    )


def _second(text: str | None) -> str:
    return time_text(_moment(text)) if text else ""


def _moment(text: str) -> datetime:
    try:
        return from_rfc3339(text)
    except ValueError:
        raise refusal(400, "INVALID_PARAMETER_SYNTAX", "start_time and end_time are times.") from None


def _get_event(asked: Asked) -> dict[str, Any]:
    return _event(asked).body


def _resend(asked: Asked) -> dict[str, Any]:
    event = _event(asked)
    asked.merchant.unsent.append(event)
    return event.body


def _event(asked: Asked) -> Event:
    found = next((event for event in asked.merchant.events if event.id == asked.ids["id"]), None)
    if found is None:
        raise not_found()
    return found


def _verify(asked: Asked) -> dict[str, Any]:
    genuine = is_genuine(asked.merchant, asked.body, raw_member(asked.raw, b"webhook_event"))
    return {"verification_status": "SUCCESS" if genuine else "FAILURE"}


def raw_member(raw: bytes, name: bytes) -> bytes:
    """Return the bytes of the object `name` in a JSON object, as they were sent."""
    begin = raw.index(b"{", raw.index(b'"%b"' % name) + len(name) + 2)
    level, in_string, escaped = 0, False, False
    for index in range(begin, len(raw)):
        byte = raw[index : index + 1]
        if in_string:
            escaped, in_string = byte == b"\\" and not escaped, byte != b'"' or escaped
        elif byte == b'"':
            in_string = True
        elif byte in b"{[":
            level += 1
        elif byte in b"}]":
            level -= 1
            if level == 0:
                return raw[begin : index + 1]
    raise ValueError("the object does not end")


_HOURS_6, _HOURS_72 = timedelta(hours=6), timedelta(hours=72)
_DAYS_30, _DAYS_45 = timedelta(days=30), timedelta(days=45)
_PLAN, _SUBSCRIPTION = "/v1/billing/plans", "/v1/billing/subscriptions"
_ORDER, _CAPTURE, _SALE = "/v2/checkout/orders", "/v2/payments/captures", "/v1/payments/sale"
_DISPUTE = "/v1/customer/disputes"
_PAYOUT, _WEBHOOK = "/v1/payments/payouts", "/v1/notifications/webhooks"

ROWS = (
    Row(
        "POST",
        "/v1/catalogs/products",
        "product",
        lambda asked: plans.create_product(asked.merchant, asked.body),
        201,
        _HOURS_72,
    ),
    Row("POST", _PLAN, "plan", lambda asked: plans.create_plan(asked.merchant, asked.body), 201, _HOURS_72),
    Row("GET", f"{_PLAN}/{{id}}", "plan", lambda asked: plans.plan_of(asked.merchant, asked.ids["id"])),
    Row(
        "POST",
        f"{_PLAN}/{{id}}/activate",
        "plan",
        lambda asked: plans.switch_plan(asked.merchant, asked.ids["id"], active=True),
        204,
    ),
    Row(
        "POST",
        f"{_PLAN}/{{id}}/deactivate",
        "plan",
        lambda asked: plans.switch_plan(asked.merchant, asked.ids["id"], active=False),
        204,
    ),
    Row(
        "POST",
        f"{_PLAN}/{{id}}/update-pricing-schemes",
        "plan",
        lambda asked: plans.update_prices(asked.merchant, asked.ids["id"], asked.body),
        204,
    ),
    Row("POST", _SUBSCRIPTION, "subscription", _create_subscription, 201, _HOURS_72, minimal=True),
    Row("GET", f"{_SUBSCRIPTION}/{{id}}", "subscription", _get_subscription),
    Row(
        "POST",
        f"{_SUBSCRIPTION}/{{id}}/cancel",
        "cancel",
        lambda asked: subscriptions.cancel(asked.merchant, _subscription(asked), asked.body),
        204,
    ),
    Row(
        "POST",
        f"{_SUBSCRIPTION}/{{id}}/suspend",
        "suspend",
        lambda asked: subscriptions.suspend(asked.merchant, _subscription(asked), asked.body),
        204,
    ),
    Row(
        "POST",
        f"{_SUBSCRIPTION}/{{id}}/activate",
        "activate",
        lambda asked: subscriptions.activate(asked.merchant, _subscription(asked), asked.body),
        204,
    ),
    Row(
        "POST",
        f"{_SUBSCRIPTION}/{{id}}/revise",
        "revise",
        lambda asked: subscriptions.revise(asked.merchant, _subscription(asked), asked.body),
    ),
    Row("GET", f"{_SUBSCRIPTION}/{{id}}/transactions", "transactions", _transactions),
    Row("GET", f"{_SALE}/{{id}}", "sale", _get_sale),
    Row("POST", f"{_SALE}/{{id}}/refund", "refund", _refund_sale, 201, _DAYS_30),
    Row("GET", "/v1/payments/refund/{id}", "refund", _get_sale_refund),
    Row("POST", _ORDER, "order", _create_order, 201, _HOURS_6, minimal=True),
    Row("GET", f"{_ORDER}/{{id}}", "order", lambda asked: orders.to_object(asked.merchant, _order(asked))),
    Row("POST", f"{_ORDER}/{{id}}/capture", "capture", _capture_order, 201, _HOURS_6, minimal=True),
    Row("GET", f"{_CAPTURE}/{{id}}", "capture", _get_capture),
    Row("POST", f"{_CAPTURE}/{{id}}/refund", "refund", _refund_capture, 201, _DAYS_45),
    Row("GET", "/v2/payments/refunds/{id}", "refund", _get_capture_refund),
    Row("GET", _DISPUTE, "dispute", lambda asked: disputes.listed(asked.merchant, asked.query)),
    Row("GET", f"{_DISPUTE}/{{id}}", "dispute", _get_dispute),
    Row("POST", _PAYOUT, "payout", lambda asked: payouts.create(asked.merchant, asked.body), 201),
    Row("GET", f"{_PAYOUT}/{{id}}", "payout", _get_payout),
    Row("GET", "/v1/payments/payouts-item/{id}", "payout", _get_payout_item),
    Row("POST", _WEBHOOK, "webhook", _create_webhook, 201),
    Row("GET", _WEBHOOK, "webhook", _list_webhooks),
    Row("GET", f"{_WEBHOOK}-events", "events", _list_events),
    Row("GET", f"{_WEBHOOK}-events/{{id}}", "events", _get_event),
    Row("POST", f"{_WEBHOOK}-events/{{id}}/resend", "events", _resend, 202),
    Row("POST", "/v1/notifications/verify-webhook-signature", "verify", _verify),
)
"""All calls."""
