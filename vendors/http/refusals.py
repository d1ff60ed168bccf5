"""Turns error responses of vendors into errors: status, message, code and retry delay."""

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime
from typing import Any

from streams.wire.codec import loads, now_ms
from streams.wire.errors import ConfigInvalid, ServiceError
from vendors.errors import Refused, TooLong
from vendors.http.causes import FAULTS
from vendors.too_long import says_too_long

RETRYABLE_STATUS = frozenset({408, 429, 500, 502, 503, 504, 529})
_ERROR_BODY_BYTES = 16 * 1024
_ERROR_BODY_S = 2


def refusal(vendor: str, status: int, raw: bytes, headers: Mapping[str, str]) -> ServiceError:
    """Return the error for an error response, with the vendor's message shortened to one line of 200 characters."""
    error = _error(raw)
    message, code = _message_and_code(error)
    if code == "engine_missing":  # A local engine is not installed, which the operator must fix.
        return ConfigInvalid(f"{vendor}: {message}")
    text = f"answered {status}" + (f": {message}" if message else "")
    quota = code in {"insufficient_quota", "quota_exceeded"}
    is_too_long = says_too_long(str(error.get("message") or message), code, status=status)
    refused = (TooLong if is_too_long else Refused)(
        vendor,
        text,
        retryable=status in RETRYABLE_STATUS and not quota,
        retry_after_s=_retry_after_s(headers, error),
        vendor_status=status,
        extra={"code": code} if code else None,
    )
    refused.body = raw
    return refused


async def error_body(read: Callable[[], Awaitable[bytes]]) -> bytes:
    """Read as much of the body as arrives in time. It may be incomplete, because the status matters most."""
    raw = bytearray()
    with suppress(*FAULTS):
        async with asyncio.timeout(_ERROR_BODY_S):
            while len(raw) < _ERROR_BODY_BYTES and (piece := await read()):
                raw += piece
    return bytes(raw)


def invalid_header(vendor: str) -> ConfigInvalid:
    return ConfigInvalid(f"{vendor}: its API key or another header contains characters that HTTP does not allow")


def _error(raw: bytes) -> Mapping[str, Any]:
    """Return the error object of a body: its `error` or `detail`, or the body itself. Of a list, use the first."""
    try:
        value = _first(loads(raw))
    except ValueError:
        return {}
    if isinstance(value, dict):
        value = _first(value.get("error") or value.get("detail") or value)
    elif not isinstance(value, str):
        value = {}
    return value if isinstance(value, dict) else {"message": value}


def _first(value: Any) -> Any:
    return value[0] if isinstance(value, list) and value else value


def _message_and_code(error: Mapping[str, Any]) -> tuple[str, str]:
    message = error.get("message") or error.get("msg") or ""
    codes = [code for name in ("code", "status", "type") if (code := error.get(name))]
    named = [code for code in codes if isinstance(code, str)]
    return " ".join(str(message).split())[:200], str(next(iter(named or codes), ""))[:64]


def _retry_after_s(headers: Mapping[str, str], error: Mapping[str, Any]) -> float | None:
    if milliseconds := headers.get("retry-after-ms"):
        return _seconds(milliseconds, per=1000)
    value = headers.get("Retry-After")
    if value is None:
        return _retry_delay_s(error.get("details"))
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - now_ms() / 1000)
    except ValueError:
        return _seconds(value)


def _retry_delay_s(details: Any) -> float | None:
    """Return the delay of `RetryInfo` in Google's errors, such as `3s`."""
    for detail in details if isinstance(details, list) else ():
        if isinstance(detail, dict) and isinstance(delay := detail.get("retryDelay"), str):
            return _seconds(delay.removesuffix("s"))
    return None


def _seconds(value: str, *, per: int = 1) -> float | None:
    try:
        seconds = float(value) / per
    except ValueError:
        return None
    return max(0.0, seconds) if math.isfinite(seconds) else None
