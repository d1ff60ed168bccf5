"""Checks the signature of Stripe's webhooks."""

import hashlib
import hmac
from collections.abc import Sequence

TOLERANCE_S = 300
_MAX_SIGNATURES = 16
_MAX_DIGITS = 12


def is_signed(header: str, body: bytes, *, secrets: Sequence[str], now: float) -> bool:
    """Return whether a `Stripe-Signature` was made for `body` with one of `secrets`, less than 300 s from `now`.

    The header is `t=<Unix seconds>,v1=<hex>`, possibly with several signatures. A secret is used as text.
    """
    fields = [
        (name.strip(), value.strip()) for name, _, value in (part.partition("=") for part in header.split(","))
    ]
    times = [value for name, value in fields if name == "t"]
    given = [value for name, value in fields if name == "v1"][:_MAX_SIGNATURES]
    if len(times) != 1 or not _is_time(times[0]) or abs(now - int(times[0])) > TOLERANCE_S:
        return False
    signed = times[0].encode() + b"." + body
    expected = [hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest() for secret in secrets if secret]
    # All are compared, so that the time does not reveal which one matches.
    matches = [
        hmac.compare_digest(one.encode("utf-8", "surrogateescape"), other.encode())
        for one in given
        for other in expected
    ]
    return any(matches)


def _is_time(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= _MAX_DIGITS
