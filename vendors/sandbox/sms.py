"""A webhook that sends text messages, under `/sms/<key>`. It keeps those that it gets instead of sending them.

`GET /sms/<key>/messages?to=<number>` lists them, the newest first. Calls are signed with the secret `sandbox`.
"""

import hmac
from collections import deque
from dataclasses import replace
from typing import Any

from aiohttp import web

from streams.wire.codec import dumps, loads, now_ms
from vendors.sandbox.calls import Call
from vendors.sandbox.rest_dialect import refusal, rest_dialect
from vendors.sandbox.sandbox import Sandbox
from vendors.sms.webhook import SIGNATURE, signature

SECRET = "sandbox"  # noqa: S105 - it protects nothing
_SMS = replace(rest_dialect("sms"), key=lambda request: request.match_info["key"])
_KEPT = 1000
_FIELDS = {"id", "app", "to", "text", "code"}


def routes(sandbox: Sandbox) -> list[web.RouteDef]:
    messages: deque[tuple[str, dict[str, Any]]] = deque(maxlen=_KEPT)

    async def receive(call: Call) -> None:
        raw = await call.request.read()
        _check_signature(call.request.headers.get(SIGNATURE, ""), raw)
        message = loads(raw)
        if message.keys() != _FIELDS:
            raise refusal(400, "invalid_message", f"a message has the fields {', '.join(sorted(_FIELDS))}")
        call.record(**message)
        key = call.request.match_info["key"]
        if not any(message["id"] == kept["id"] for _, kept in messages):
            messages.appendleft((key, {**message, "at": now_ms()}))
        await call.answer({"id": message["id"]}, empty={})

    async def listed(request: web.Request) -> web.Response:
        key, to = request.match_info["key"], request.query.get("to")
        found = [message for used, message in messages if used == key and to in {None, message["to"]}]
        return web.Response(body=dumps(found), content_type="application/json")

    return [
        sandbox.post("/sms/{key}", _SMS, "sms", receive),
        web.get("/sms/{key}/messages", listed),
    ]


def _check_signature(header: str, raw: bytes) -> None:
    t = header.removeprefix("t=").partition(",")[0]
    expected = signature(SECRET, raw, t=int(t)) if t.isascii() and t.isdecimal() else ""
    if not expected or not hmac.compare_digest(header.encode(), expected.encode()):
        raise refusal(401, "invalid_signature", f"{SIGNATURE} is missing or wrong")
