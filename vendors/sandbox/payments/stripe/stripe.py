"""The sandbox's Stripe under `/stripe`: payments, subscriptions and webhooks with state, for every test card.

A fault that occurs while the answer is sent, such as `hang_before_output`, has its effect first: the card is
charged, and the client does not learn of it. `POST /stripe/_sandbox/webhooks` switches on faults of webhooks,
`…/clock` moves the clock, `…/authenticate` finishes an authentication, and `…/dispute` opens a dispute or changes
its status.
"""

import base64
from collections.abc import Callable, Mapping
from copy import deepcopy
from datetime import timedelta
from functools import partial
from typing import Any

from aiohttp import web

from streams.wire.codec import dumps, loads_request
from streams.wire.ids import new_id, sha256_hex
from streams.wire.model import Model
from vendors.sandbox.calls import Call, Dialect, Refusal
from vendors.sandbox.deliveries import DeliveryFaults, FaultSource
from vendors.sandbox.faults import Fault, KeyOptions
from vendors.sandbox.payments.stripe import billing, intents, invoices, methods
from vendors.sandbox.payments.stripe.forms import decoded
from vendors.sandbox.payments.stripe.pages import Pages
from vendors.sandbox.payments.stripe.store import WEBHOOK_SECRET, Object, Store, invalid, missing, number, page_of
from vendors.sandbox.sandbox import Sandbox
from vendors.sandbox_clock import CARD_ACCOUNT

_ERRORS = {
    Fault.UNAUTHORIZED: (401, "invalid_request_error", "api_key_expired"),
    Fault.OUT_OF_QUOTA: (403, "invalid_request_error", "more_permissions_required"),
    Fault.RATE_LIMITED: (429, "invalid_request_error", "rate_limit"),
    Fault.SERVER_ERROR: (500, "api_error", ""),
    Fault.UNAVAILABLE: (503, "api_error", ""),
}
_KEPT_STATUSES = frozenset({200, 402})
"""Statuses of answers that are kept for a key. Validation errors are not."""

Create = Callable[[Store, Object], Object]
Change = Callable[[Store, str, Object], Object]


def _key(request: web.Request) -> str:
    scheme, _, value = request.headers.get("Authorization", "").partition(" ")
    if scheme == "Basic":
        try:
            return base64.b64decode(value).decode().partition(":")[0]
        except ValueError:
            return ""
    return value if scheme == "Bearer" else ""


def _refuse(fault: Fault, key_options: KeyOptions) -> Refusal:
    status, kind, code = _ERRORS[fault]
    error = {"type": kind, "message": f"The request was refused: {fault}."} | ({"code": code} if code else {})
    busy = status in {429, 503}
    return Refusal(status, {"error": error}, {"Retry-After": f"{key_options.retry_after_s:g}"} if busy else None)


def _headers(request: web.Request) -> Mapping[str, str]:
    given = {
        name: request.headers[name] for name in ("Idempotency-Key", "Stripe-Version") if name in request.headers
    }
    return {"Request-Id": f"req_{new_id()[:14]}", **given}


STRIPE = Dialect("stripe", _key, _refuse, _headers)


def routes(sandbox: Sandbox) -> list[web.RouteDef]:
    store = Store(sandbox.deliveries)
    billing.add_prices(store)
    sandbox.clocks.append(partial(_move_clock, store))
    get, post, delete = (
        partial(_get, sandbox, store),
        partial(_post, sandbox, store),
        partial(_delete, sandbox, store),
    )
    objects = ("customer", "payment_method", "payment_intent", "setup_intent", "subscription", "invoice")
    return [
        post("customers", methods.create_customer),
        post("customers/{id}", methods.update_customer),
        delete("customers/{id}", billing.delete_customer),
        get(
            "customers/{id}/payment_methods",
            lambda store, params: methods.list_methods(store, _of_customer(params)),
        ),
        post("payment_methods", methods.create_method),
        get("payment_methods", methods.list_methods),
        post("payment_methods/{id}/attach", methods.attach),
        post("payment_methods/{id}/detach", methods.detach),
        post("payment_intents", intents.create_payment),
        get("payment_intents", intents.list_payments),
        post("payment_intents/{id}", intents.update_payment),
        post("payment_intents/{id}/confirm", intents.confirm_payment),
        post("payment_intents/{id}/cancel", intents.cancel_payment),
        post("setup_intents", intents.create_setup),
        post("setup_intents/{id}/confirm", intents.confirm_setup),
        post("setup_intents/{id}/cancel", intents.cancel_setup),
        post("prices", billing.create_price),
        post("subscriptions", billing.create),
        get("subscriptions", billing.list_subscriptions),
        post("subscriptions/{id}", billing.update),
        delete("subscriptions/{id}", billing.cancel),
        get("invoices", invoices.list_invoices),
        get("invoice_payments", invoices.payments),
        post("refunds", invoices.refund),
        get("refunds", partial(invoices.of_payment, "refund")),
        get("disputes", partial(invoices.of_payment, "dispute")),
        get("events", _events),
        post("webhook_endpoints", _endpoint),
        get("webhook_endpoints", _endpoints),
        delete("webhook_endpoints/{id}", lambda store, id_, _: store.remove("webhook_endpoint", id_)),
        *(_read(sandbox, store, kind) for kind in (*objects, "price", "refund", "dispute", "event")),
        web.post("/stripe/_sandbox/{action}", partial(_control, sandbox, store)),
        *Pages(store).routes(),
    ]


def _move_clock(store: Store, account: str, offset: timedelta) -> None:
    if account == CARD_ACCOUNT:
        billing.advance(store, by_s=int(offset.total_seconds()) - store.offset_s)


def _get(sandbox: Sandbox, store: Store, path: str, list_: Create) -> web.RouteDef:
    async def serve(call: Call) -> None:
        params = {**_decoded(call.request.query_string), **call.request.match_info}
        call.record(method="GET", path=path, params=params)
        await call.answer(list_(store, params), empty={})

    return sandbox.get(f"/stripe/v1/{path}", STRIPE, "payments", serve)


def _read(sandbox: Sandbox, store: Store, kind: str) -> web.RouteDef:
    async def serve(call: Call) -> None:
        params = _decoded(call.request.query_string)
        call.record(method="GET", path=f"{kind}s/{{id}}", params=params)
        found = store.get(kind, call.request.match_info["id"])
        await call.answer(_expanded(store, found, params), empty={})

    return sandbox.get(f"/stripe/v1/{kind}s/{{id}}", STRIPE, "payments", serve)


def _post(sandbox: Sandbox, store: Store, path: str, act: Create | Change) -> web.RouteDef:
    return sandbox.post(f"/stripe/v1/{path}", STRIPE, "payments", partial(_act, store, path, act))


def _delete(sandbox: Sandbox, store: Store, path: str, act: Change) -> web.RouteDef:
    return sandbox.delete(f"/stripe/v1/{path}", STRIPE, "payments", partial(_act, store, path, act))


async def _act(store: Store, path: str, act: Any, call: Call) -> None:
    """Execute a request once for each idempotency key that is not forgotten yet."""
    text = await call.request.text()
    params, key = _decoded(text), call.request.headers.get("Idempotency-Key")
    call.record(
        method=call.request.method,
        path=path,
        key=key,
        params={name: value for name, value in params.items() if name != "card"},
    )
    request = sha256_hex(f"{call.request.method} {call.request.path} {text}".encode())
    if (kept := store.answer_of(key)) is not None:
        if kept.request != request:
            message = (
                "Keys for idempotent requests can only be used with the same parameters they were first used with."
            )
            raise Refusal(400, {"error": {"type": "idempotency_error", "message": message}})
        call.headers["Idempotent-Replayed"] = "true"
        if kept.status != 200:
            raise Refusal(kept.status, kept.body)
        await call.answer(kept.body, empty={})
        return
    status, body = _result(store, act, params, call)
    if key is not None and status in _KEPT_STATUSES:
        store.keep_answer(key, request=request, status=status, body=body)
    if status != 200:
        raise Refusal(status, body)
    await call.answer(body, empty={})


def _result(store: Store, act: Any, params: Object, call: Call) -> tuple[int, bytes]:
    ids = call.request.match_info.values()
    try:
        return 200, dumps(_expanded(store, act(store, *ids, params), params))
    except Refusal as refusal:
        return refusal.status, refusal.body


def _decoded(text: str) -> Object:
    try:
        return decoded(text)
    except ValueError:
        raise invalid("Invalid form encoding.") from None


def _of_customer(params: Object) -> Object:
    return {"type": "card"} | params | {"customer": params["id"]}


def _expanded(store: Store, found: Object, params: Object) -> Object:
    """Return an object in which the objects that `expand` names stand in place of their ids."""
    paths = params.get("expand", [])
    if not paths:
        return found
    found = deepcopy(found)
    for path in paths:
        names, part = path.split("."), found
        for name in names:
            value = part.get(name)
            if isinstance(value, str):
                value = part[name] = deepcopy(store.get(_kind_of(name), value))
            if not isinstance(value, dict):
                break
            part = value
    return found


def _kind_of(name: str) -> str:
    names = {"latest_invoice": "invoice", "latest_charge": "charge", "default_payment_method": "payment_method"}
    return names.get(name, name)


def _events(store: Store, params: Object) -> Object:
    since = number(params.get("created", {}).get("gte", "0"), param="created[gte]")
    types = params.get("types", [params["type"]] if "type" in params else None)
    found = [
        event
        for event in store.find("event")
        if event["created"] >= since and (not types or event["type"] in types)
    ]
    page = page_of(found, params, url="/v1/events")
    return {**page, "data": [*store.garbage, *page["data"]]}


def _endpoint(store: Store, params: Object) -> Object:
    for name in ("url", "enabled_events"):
        if name not in params:
            raise missing(name)
    return store.new(
        "webhook_endpoint", url=params["url"], enabled_events=params["enabled_events"], status="enabled",
        secret=WEBHOOK_SECRET,
    )  # fmt: skip


def _endpoints(store: Store, params: Object) -> Object:
    return page_of(store.find("webhook_endpoint"), params, url="/v1/webhook_endpoints")


class _Authentication(Model):
    intent: str
    success: bool = True


class _Dispute(Model):
    payment_intent: str
    status: str = "needs_response"
    amount: int | None = None
    """What is disputed. `None`: all of the payment."""


class _Move(Model):
    by_s: int


async def _control(sandbox: Sandbox, store: Store, request: web.Request) -> web.Response:
    """Change something that only the card's owner, a bank, or time can change."""
    body = loads_request(await request.read() or b"{}")
    answer: Object = {}
    try:
        match request.match_info["action"]:
            case "webhooks":
                store.faults = FaultSource(DeliveryFaults.of(body))
            case "clock":
                billing.advance(store, by_s=_Move.of(body).by_s)
                answer = {"now": store.now()}
            case "authenticate":
                wish = _Authentication.of(body)
                kind = "setup_intent" if wish.intent.startswith("seti_") else "payment_intent"
                answer = intents.authenticate(store, store.get(kind, wish.intent), success=wish.success)
            case "list_garbage":
                store.garbage = body["events"]
            case "dispute":
                answer = _dispute(store, _Dispute.of(body))
            case _:
                raise web.HTTPNotFound
    except Refusal as refusal:
        return web.Response(status=refusal.status, body=refusal.body, content_type="application/json")
    return web.Response(body=dumps(answer), content_type="application/json")


def _dispute(store: Store, wish: _Dispute) -> Object:
    """Open the dispute of a payment, or change its status."""
    intent = store.get("payment_intent", wish.payment_intent)
    known = store.find("dispute", payment_intent=intent["id"])
    if not known:
        return intents.open_dispute(store, intent, status=wish.status, amount=wish.amount)
    known[0]["status"] = wish.status
    closed = wish.status in {"won", "lost", "warning_closed"}
    store.emit("charge.dispute.closed" if closed else "charge.dispute.updated", known[0])
    return known[0]
