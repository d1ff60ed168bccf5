"""The objects of the sandbox's Stripe account, its clock and its events."""

import hashlib
import hmac
import secrets
import time
from collections import defaultdict
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import Any

from streams.wire.codec import dumps
from vendors.sandbox.calls import Refusal
from vendors.sandbox.deliveries import Deliveries, Delivery, FaultSource, Signed

WEBHOOK_SECRET = "whsec_sandbox"  # noqa: S105 - it protects nothing
API_VERSION = "2025-03-31.basil"
_KEYS_KEPT_S = 24 * 3600
"""How long an idempotency key is remembered."""

Object = dict[str, Any]
_PREFIXES = {
    "charge": "ch", "customer": "cus", "dispute": "dp", "event": "evt", "invoice": "in", "invoice_payment": "inpay",
    "payment_intent": "pi", "payment_method": "pm", "price": "price", "refund": "re", "setup_intent": "seti",
    "subscription": "sub", "subscription_item": "si", "webhook_endpoint": "we",
}  # fmt: skip


_WITHOUT = {"livemode": {"refund", "subscription_item"}, "metadata": {"event", "invoice_payment"}}
"""The kinds of objects that do not have a field."""


def invalid(message: str, *, code: str | None = None, param: str | None = None, **more: Any) -> Refusal:
    """Return the response to an invalid request."""
    error = {"type": "invalid_request_error", "message": message, "code": code, "param": param, **more}
    return Refusal(400, {"error": {name: value for name, value in error.items() if value is not None}})


def missing(param: str) -> Refusal:
    return invalid(f"Missing required param: {param}.", code="parameter_missing", param=param)


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to the first request with an idempotency key."""

    at: int
    request: str
    """A digest of the request."""
    status: int
    body: bytes


class Store:
    def __init__(self, deliveries: Deliveries) -> None:
        self._deliveries = deliveries
        self.faults = FaultSource()
        """The faults of its webhooks."""
        self.garbage: list[Any] = []
        """What each page of its events begins with."""
        self._objects: defaultdict[str, dict[str, Object]] = defaultdict(dict)
        """By kind and id."""
        self.offset_s = 0
        self._answers: dict[str, Answer] = {}
        """By idempotency key."""
        self.periods: dict[str, int] = {}
        """The number of paid periods of each subscription, by its id."""
        self.card_numbers: dict[str, str] = {}
        """The number of the card of each payment method, which its object does not have."""

    def now(self) -> int:
        return int(time.time()) + self.offset_s

    def answer_of(self, key: str | None) -> Answer | None:
        """Return the answer to an earlier request with an idempotency key, unless the key is forgotten."""
        answer = None if key is None else self._answers.get(key)
        return answer if answer is not None and self.now() < answer.at + _KEYS_KEPT_S else None

    def keep_answer(self, key: str, *, request: str, status: int, body: bytes) -> None:
        self._answers[key] = Answer(self.now(), request, status, body)

    def new(self, kind: str, *, id_: str | None = None, **fields: Any) -> Object:
        """Store a new object."""
        common = {"livemode": False, "metadata": {}}
        made: Object = {
            "id": id_ or f"{_PREFIXES[kind]}_{secrets.token_hex(12)}",
            "object": kind,
            "created": self.now(),
            **{name: value for name, value in common.items() if kind not in _WITHOUT[name]},
            **fields,
        }
        self._objects[kind][made["id"]] = made
        return made

    def get(self, kind: str, id_: str, *, param: str = "id") -> Object:
        found = self._objects[kind].get(id_)
        is_deleted = found is not None and "deleted" in found and param != "id"
        if found is None or is_deleted:
            name = kind.replace("_", " ")
            error = {
                "type": "invalid_request_error", "code": "resource_missing", "param": param,
                "message": f"No such {name}: '{id_[:64]}'",
            }  # fmt: skip
            raise Refusal(400 if param == "customer" else 404, {"error": error})
        return found

    def remove(self, kind: str, id_: str) -> Object:
        self.get(kind, id_)
        del self._objects[kind][id_]
        return {"id": id_, "object": kind, "deleted": True}

    def find(self, kind: str, **where: Any) -> list[Object]:
        """Return the objects of a kind with these fields, the newest first."""
        return [
            stored
            for stored in reversed(self._objects[kind].values())
            if all(stored.get(name) == value for name, value in where.items())
        ]

    def emit(self, kind: str, about: Object, *, previous: Mapping[str, Any] | None = None) -> None:
        """Record an event, and send it to the webhook endpoints."""
        data: Object = {"object": deepcopy(about)}
        if previous is not None:
            data["previous_attributes"] = dict(previous)
        event = self.new(
            "event",
            api_version=API_VERSION,
            type=kind,
            data=data,
            pending_webhooks=0,
            request={"id": None, "idempotency_key": None},
        )
        for endpoint in self.find("webhook_endpoint"):
            if kind in endpoint["enabled_events"] or "*" in endpoint["enabled_events"]:
                delivery = Delivery(endpoint["url"], partial(_signed, dumps(event)), event["id"])
                self._deliveries.add(delivery, self.faults)


def _signed(body: bytes) -> Signed:
    t = int(time.time())
    mac = hmac.new(WEBHOOK_SECRET.encode(), b"%d." % t + body, hashlib.sha256).hexdigest()
    return {"Content-Type": "application/json; charset=utf-8", "Stripe-Signature": f"t={t},v1={mac}"}, body


def page_of(found: list[Object], params: Mapping[str, Any], *, url: str) -> Object:
    """Return the page of a list that `limit`, `starting_after` and `ending_before` select."""
    limit = number(params.get("limit", "10"), param="limit")
    if not 1 <= limit <= 100:
        raise invalid("Limit must be from 1 to 100.", code="parameter_invalid_integer", param="limit")
    ids = [item["id"] for item in found]
    if (after := params.get("starting_after")) is not None:
        found = found[ids.index(after) + 1 :] if after in ids else []
    elif (before := params.get("ending_before")) is not None:
        found = found[max(0, ids.index(before) - limit) : ids.index(before)] if before in ids else []
    return {"object": "list", "url": url, "has_more": len(found) > limit, "data": found[:limit]}


def number(text: Any, *, param: str) -> int:
    if not isinstance(text, str) or not (text.isascii() and text.removeprefix("-").isdecimal()):
        raise invalid(f"Invalid integer: {text}", code="parameter_invalid_integer", param=param)
    return int(text)


def truth(text: Any, *, param: str) -> bool:
    if text not in {"true", "false"}:
        raise invalid(f"Invalid boolean: {text}", param=param)
    return bool(text == "true")
