"""What all Google services of the sandbox share: keys and tokens, errors, and the validation of bodies."""

import re
from collections.abc import Iterable, Mapping
from secrets import token_hex
from typing import Any

from aiohttp import web

from streams.wire.codec import dumps, loads
from vendors.sandbox.calls import Call, Dialect, Refusal
from vendors.sandbox.faults import Fault, KeyOptions

_TYPES = "type.googleapis.com/google.rpc."
_CAMEL = re.compile(r"_([a-z])")


def refusal(code: int, status: str, message: str, *details: Mapping[str, Any]) -> Refusal:
    error: dict[str, Any] = {"code": code, "message": message, "status": status}
    return Refusal(code, {"error": error | ({"details": details} if details else {})})


def invalid(message: str) -> Refusal:
    return refusal(400, "INVALID_ARGUMENT", message)


def _reason(reason: str) -> Mapping[str, Any]:
    return {"@type": f"{_TYPES}ErrorInfo", "reason": reason, "domain": "googleapis.com"}


def _key(request: web.Request) -> str:
    """Return the key from a header or the query, or the token of a service account.

    Raise `Refusal` for the token `wrong`, because the vendor's error for tokens differs from that for keys.
    """
    token = request.headers.get("Authorization", "").removeprefix("Bearer ")
    if token == "wrong":  # noqa: S105 - a fake token
        message = "Request had invalid authentication credentials. Expected OAuth 2 access token."
        raise refusal(401, "UNAUTHENTICATED", message, _reason("ACCESS_TOKEN_EXPIRED"))
    return token or request.headers.get("X-Goog-Api-Key") or request.query.get("key", "")


def _refuse(fault: Fault, key_options: KeyOptions) -> Refusal:
    match fault:
        case Fault.UNAUTHORIZED:
            message = "API key not valid. Please pass a valid API key."
            return refusal(400, "INVALID_ARGUMENT", message, _reason("API_KEY_INVALID"))
        case Fault.RATE_LIMITED:
            wait = {"@type": f"{_TYPES}RetryInfo", "retryDelay": f"{key_options.retry_after_s:g}s"}
            return refusal(429, "RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota).", wait)
        case Fault.OUT_OF_QUOTA:
            message = "This API method requires billing to be enabled."
            return refusal(403, "PERMISSION_DENIED", message, _reason("BILLING_DISABLED"))
        case Fault.UNAVAILABLE:
            return refusal(503, "UNAVAILABLE", "The service is currently unavailable.")
        case _:
            return refusal(500, "INTERNAL", "Internal error encountered.")


def _headers(request: web.Request) -> Mapping[str, str]:
    return {"Server": "ESF", "X-Content-Type-Options": "nosniff", "X-Goog-Request-Id": token_hex(8)}


def dialect(vendor: str) -> Dialect:
    return Dialect(vendor, _key, _refuse, _headers)


async def read_json(call: Call, fields: Iterable[str]) -> dict[str, Any]:
    """Read the JSON object of a request, with all names in camel case. Raise `Refusal` for an unknown field."""
    try:
        body = loads(await call.request.read())
    except ValueError:
        body = None
    if not isinstance(body, dict):
        raise invalid("Invalid JSON payload received. Unexpected token.")
    body = _camel(body)
    for name in body.keys() - set(fields):
        raise invalid(f'Invalid JSON payload received. Unknown name "{name}": Cannot find field.')
    return dict(body)


def _camel(value: Any) -> Any:
    """Convert names such as `max_output_tokens` to camel case. The vendor accepts both spellings."""
    if isinstance(value, dict):
        return {_CAMEL.sub(lambda match: match[1].upper(), name): _camel(part) for name, part in value.items()}
    return [_camel(part) for part in value] if isinstance(value, list) else value


def part(body: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return the object under `name`, or an empty one if it is absent."""
    value = body.get(name) or {}
    if not isinstance(value, dict):
        raise invalid(f"Invalid value at '{name}'.")
    return value


def pretty(value: Any) -> bytes:
    """Encode JSON over several lines, as Google does."""
    lines = re.sub(rb"([{\[,])(?=\")", rb"\1\r\n  ", dumps(value))
    return lines.replace(b"}}", b"}\r\n}") + b"\r\n"
