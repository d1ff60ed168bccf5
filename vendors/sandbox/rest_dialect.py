"""A dialect for vendors whose errors have no peculiarities: bearer tokens, and `{"error": {"code", "message"}}`."""

from aiohttp import web

from vendors.sandbox.calls import Dialect, Refusal
from vendors.sandbox.faults import Fault, KeyOptions

_STATUSES = {
    Fault.UNAUTHORIZED: 401,
    Fault.OUT_OF_QUOTA: 402,
    Fault.RATE_LIMITED: 429,
    Fault.SERVER_ERROR: 500,
    Fault.UNAVAILABLE: 503,
}
_BUSY = frozenset({Fault.RATE_LIMITED, Fault.UNAVAILABLE})


def refusal(status: int, code: str, message: str) -> Refusal:
    return Refusal(status, {"error": {"code": code, "message": message}})


def _key(request: web.Request) -> str:
    return request.headers.get("Authorization", "").removeprefix("Bearer ")


def _refuse(fault: Fault, key_options: KeyOptions) -> Refusal:
    refused = refusal(_STATUSES[fault], str(fault), f"The request was refused: {fault}.")
    if fault in _BUSY:
        refused.headers["Retry-After"] = f"{key_options.retry_after_s:g}"
    return refused


def rest_dialect(vendor: str) -> Dialect:
    return Dialect(vendor, _key, _refuse)
