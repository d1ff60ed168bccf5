"""A platform that sends webhooks, and their handler."""

import hashlib
import hmac
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import ClientSession

from app.http.rows.webhooks import Delivery, InvalidSignature, PlatformNotFound, Verified, WebhookSource
from app.services import Services
from storage.jobs.inbox import Webhook
from streams.wire.codec import dumps, loads

KEY = b"a key that both know"
CONFIG = "main"


def sign(body: bytes) -> str:
    return hmac.new(KEY, body, hashlib.sha256).hexdigest()


async def verify(services: Services, delivery: Delivery) -> Verified:
    if delivery.config != CONFIG:
        raise PlatformNotFound(delivery.config)
    if not hmac.compare_digest(delivery.headers.get("X-Signature", "").encode(), sign(delivery.body).encode()):
        raise InvalidSignature
    try:
        event_id = loads(delivery.body)["id"]
    except ValueError:
        event_id = None
    return Verified(event_id=event_id, delivery_id=delivery.headers.get("X-Delivery"))


def source(work: Callable[[Services, Webhook], Awaitable[None]], name: str = "pay") -> WebhookSource:
    return WebhookSource(name, "Receive an event of payments.", verify, work, headers=("X-Delivery", "X-Trace"))


async def deliver(
    http: ClientSession, url: str, event: Any, *, path: str = "pay/default/main", **headers: str
) -> tuple[int, Any]:
    """The status and the error, if any, of a delivery of `event`, which is JSON or bytes."""
    body = event if isinstance(event, bytes) else dumps(event)
    given = {"X-Signature": sign(body), **{name.replace("_", "-"): value for name, value in headers.items()}}
    async with http.post(f"{url}/bp/webhook/{path}", data=body, headers=given) as response:
        raw = await response.read()
        return response.status, loads(raw)["error"]["message"] if raw else None
