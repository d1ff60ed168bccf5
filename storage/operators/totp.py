"""Time-based one-time codes (RFC 6238) of authenticator apps: SHA-1, 6 digits, steps of 30 s."""

import base64
import hashlib
import hmac
import secrets
from urllib.parse import quote

STEP_S = 30
_DIGITS = 6
_SECRET_BYTES = 20
_SKEW_STEPS = 1
"""By how many steps the clock of an authenticator may differ."""


def new_secret() -> str:
    """Return a new secret in base32, as authenticators expect it."""
    return base64.b32encode(secrets.token_bytes(_SECRET_BYTES)).decode()


def code_at(secret: str, step: int) -> str:
    """Return the code of a time step, which is the Unix time divided by `STEP_S`."""
    mac = hmac.digest(base64.b32decode(secret), step.to_bytes(8), hashlib.sha1)
    offset = mac[-1] & 0xF
    number = int.from_bytes(mac[offset : offset + 4]) & 0x7FFF_FFFF
    return str(number % 10**_DIGITS).zfill(_DIGITS)


def matching_step(secret: str, code: str, *, now_s: float, after: int) -> int | None:
    """Return the step whose code is `code`, if it is close to now and later than `after`, the last one used."""
    current = int(now_s) // STEP_S
    for step in range(current - _SKEW_STEPS, current + _SKEW_STEPS + 1):
        if step > after and hmac.compare_digest(code_at(secret, step).encode(), code.encode()):
            return step
    return None


def uri(secret: str, *, issuer: str, account: str) -> str:
    """Return the `otpauth` URI that authenticators read from a QR code."""
    label = f"{quote(issuer, safe='')}:{quote(account, safe='')}"
    return f"otpauth://totp/{label}?secret={secret}&issuer={quote(issuer, safe='')}"
