"""What all of sandboxed Google shares: keys and tokens, errors, and the check of a body."""

import re
from collections.abc import Iterable, Mapping
from secrets import token_hex
from typing import Any

from aiohttp import web

from streams.wire.codec import dumps, loads
from vendors.sandbox.calls import Call, Dialect, Refusal
from vendors.sandbox.faults import Fault, Orders

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
    """Of a header or the query; or the token of a service account, whose refusal is one of its own."""
    token = request.headers.get("Authorization", "").removeprefix("Bearer ")
    if token == "wrong":  # noqa: S105 - of the sandbox
        message = "Request had invalid authentication credentials. Expected OAuth 2 access token."
        raise refusal(401, "UNAUTHENTICATED", message, _reason("ACCESS_TOKEN_EXPIRED"))
    return token or request.headers.get("X-Goog-Api-Key") or request.query.get("key", "")


def _refuse(fault: Fault, orders: Orders) -> Refusal:
    match fault:
        case Fault.UNAUTHORIZED:
            message = "API key not valid. Please pass a valid API key."
            return refusal(400, "INVALID_ARGUMENT", message, _reason("API_KEY_INVALID"))
        case Fault.RATE_LIMITED:
            wait = {"@type": f"{_TYPES}RetryInfo", "retryDelay": f"{orders.retry_after_s:g}s"}
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
    """The JSON object of a request, all names in camel case; a name that the method does not know is refused."""
    try:
        asked = loads(await call.request.read())
    except ValueError:
        asked = None
    if not isinstance(asked, dict):
        raise invalid("Invalid JSON payload received. Unexpected token.")
    asked = _camel(asked)
    for name in asked.keys() - set(fields):
        raise invalid(f'Invalid JSON payload received. Unknown name "{name}": Cannot find field.')
    return dict(asked)


def _camel(value: Any) -> Any:
    """Both `max_output_tokens` and `maxOutputTokens` are read."""
    if isinstance(value, dict):
        return {_CAMEL.sub(lambda found: found[1].upper(), name): _camel(part) for name, part in value.items()}
    return [_camel(part) for part in value] if isinstance(value, list) else value


def part(asked: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """The object under `name`; an empty one where there is none."""
    value = asked.get(name) or {}
    if not isinstance(value, dict):
        raise invalid(f"Invalid value at '{name}'.")
    return value


def pretty(value: Any) -> bytes:
    """As Google prints JSON: over several lines."""
    lines = re.sub(rb"([{\[,])(?=\")", rb"\1\r\n  ", dumps(value))
    return lines.replace(b"}}", b"}\r\n}") + b"\r\n"
