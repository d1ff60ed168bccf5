"""A webhook to which events are reported, under `/events/<key>`. It keeps those that it gets.

`GET /events/<key>` lists them, the newest first. Calls are signed with `SECRET`.
"""

import base64
import hmac
from collections import deque
from dataclasses import replace
from typing import Any

from aiohttp import web

from streams.wire.codec import dumps, loads
from vendors.sandbox.calls import Call
from vendors.sandbox.rest_dialect import refusal, rest_dialect
from vendors.sandbox.sandbox import Sandbox
from vendors.sinks.webhook import ID, SIGNATURE, TIMESTAMP, signature

_KEY = b"sandbox".ljust(24, b".")
SECRET = f"whsec_{base64.b64encode(_KEY).decode()}"
"""It protects nothing."""
_EVENTS = replace(rest_dialect("events"), key=lambda request: request.match_info["key"])
_KEPT = 1000
_FIELDS = {"event", "id", "app_id", "time", "data"}


def routes(sandbox: Sandbox) -> list[web.RouteDef]:
    events: deque[tuple[str, dict[str, Any]]] = deque(maxlen=_KEPT)

    async def receive(call: Call) -> None:
        raw = await call.request.read()
        _check_signature(call.request, raw)
        event = loads(raw)
        if event.keys() != _FIELDS or event["id"] != call.request.headers[ID]:
            raise refusal(400, "invalid_event", f"an event has the fields {', '.join(sorted(_FIELDS))}")
        call.record(**event)
        kept = (call.request.match_info["key"], event)
        if kept not in events:
            events.appendleft(kept)
        await call.answer({"id": event["id"]}, empty={})

    async def listed(request: web.Request) -> web.Response:
        found = [event for key, event in events if key == request.match_info["key"]]
        return web.Response(body=dumps(found), content_type="application/json")

    return [sandbox.post("/events/{key}", _EVENTS, "events", receive), web.get("/events/{key}", listed)]


def _check_signature(request: web.Request, raw: bytes) -> None:
    headers = request.headers
    t, given = headers.get(TIMESTAMP, ""), headers.get(SIGNATURE, "")
    expected = (
        signature(_KEY, headers.get(ID, ""), raw, t=int(t)) if t.isascii() and t.isdecimal() else "no signature"
    )
    if not hmac.compare_digest(given.encode(), expected.encode()):
        raise refusal(401, "invalid_signature", f"{SIGNATURE} is missing or wrong")
