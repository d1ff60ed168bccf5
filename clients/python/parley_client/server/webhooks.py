"""Verification of the events that a Parley server posts to a webhook of an app, as in Standard Webhooks."""

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from parley_client.errors import ParleyError

_TOLERANCE_S = 300
_PREFIX = "whsec_"
_TIMESTAMP_DIGITS = 12
"""Unix seconds have 11 digits until the year 5138."""


class WebhookEvent(TypedDict):
    event: str
    """Ignore names that you do not know."""
    id: str
    """An event may arrive more than once, always with the same id."""
    app_id: str
    time: str
    data: dict[str, Any]


class WebhookRefused(ParleyError):
    """A call of a webhook that Parley has not made, or has made too long ago."""

    def __init__(self, what: str) -> None:
        super().__init__("webhook_refused", f"webhook_refused: {what}")


def verify_webhook(
    headers: Mapping[str, str], body: bytes | str, secret: str | Sequence[str], *, now: float | None = None
) -> WebhookEvent:
    """Return the event of a call.

    Raises `WebhookRefused`, `ValueError` for a secret that is no secret, and `TypeError` for a parsed body.

    `body` are the bytes as they have arrived. `secret` is that of the config of kind `events`; while one replaces
    another, both. `now` is the current time in Unix seconds.
    """
    if not isinstance(body, bytes | bytearray | str):
        raise TypeError("body must be the raw bytes or text, not a parsed object")
    raw = body.encode() if isinstance(body, str) else body
    keys = [_key(one) for one in ([secret] if isinstance(secret, str) else secret)]
    given = {name.lower(): value for name, value in headers.items()}
    message_id, timestamp = given.get("webhook-id", ""), given.get("webhook-timestamp", "")
    if not message_id or not message_id.isascii():
        raise WebhookRefused("webhook-id is missing or malformed")
    if not (timestamp.isascii() and timestamp.isdecimal() and len(timestamp) <= _TIMESTAMP_DIGITS):
        raise WebhookRefused("webhook-timestamp is missing or malformed")
    if abs((time.time() if now is None else now) - int(timestamp)) > _TOLERANCE_S:
        raise WebhookRefused("webhook-timestamp is too far from the time of this machine")
    signed = b"%b.%b.%b" % (message_id.encode(), timestamp.encode(), raw)
    expected = [hmac.digest(key, signed, hashlib.sha256) for key in keys]
    found = _signatures(given.get("webhook-signature", ""))
    if not any(hmac.compare_digest(right, sent) for right in expected for sent in found):
        raise WebhookRefused("webhook-signature is missing or wrong")
    event: WebhookEvent = json.loads(raw)
    return event


def _key(secret: str) -> bytes:
    """Return the key. An empty one, such as that of a missing setting, would accept everyone's signature."""
    key = base64.b64decode(secret.removeprefix(_PREFIX), validate=True) if secret.startswith(_PREFIX) else b""
    if not key:
        raise ValueError(f"a secret of a webhook is {_PREFIX} and a key in Base64")
    return key


def _signatures(header: str) -> list[bytes]:
    """Return the signatures of version 1, which are separated by spaces."""
    found = []
    for part in header.split():
        version, _, text = part.partition(",")
        if version == "v1":
            try:
                found.append(base64.b64decode(text, validate=True))
            except ValueError:
                continue  # It is not one of ours, and so matches nothing.
    return found
