"""Checks the signatures of a model host's webhooks, which are those of Standard Webhooks."""

import binascii
import hmac
from base64 import b64decode

from vendors.sinks.webhook import signature

TOLERANCE_S = 300
_PREFIX = "whsec_"
_MAX_SIGNATURES = 16
_MAX_DIGITS = 12


def key_bytes(key: str) -> bytes:
    """Return the key of `whsec_<base64>`. Raises `ValueError`."""
    try:
        return b64decode(key.removeprefix(_PREFIX), validate=True)
    except binascii.Error as error:
        raise ValueError("is not base64") from error


def is_signed(key: bytes, body: bytes, *, delivery_id: str, timestamp: str, signatures: str, now: float) -> bool:
    """Return whether one of the space-separated `signatures` was made with `key`, less than 300 s from `now`."""
    is_time = timestamp.isascii() and timestamp.isdecimal() and len(timestamp) <= _MAX_DIGITS
    if not is_time or abs(now - int(timestamp)) > TOLERANCE_S or not delivery_id.isascii():
        return False
    expected = signature(key, delivery_id, body, t=int(timestamp)).encode()
    given = signatures.split()[:_MAX_SIGNATURES]
    # All are compared, so that the duration does not reveal which one matches.
    matches = [hmac.compare_digest(expected, text.encode("utf-8", "surrogateescape")) for text in given]
    return any(matches)
