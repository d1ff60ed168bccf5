"""The HTTP response to an error: status, envelope and headers (§7)."""

import math
from collections.abc import Mapping
from typing import Any

from aiohttp import web

from streams.wire.codec import dumps
from streams.wire.errors import ServiceError

STATUS: dict[str, int] = {
    "invalid_parameter": 400,
    "invalid_api_version": 400,
    "app_not_found": 400,
    "anonymous_login_not_allowed": 400,
    "account.auth_failed": 400,
    "account.invalid_session": 400,
    "account.deactivate_pending_user": 400,
    "backend unavailable": 400,
    "auth_failed": 401,
    "permission_denied": 403,
    "item_not_found": 404,
    "not_found": 404,
    "method_not_allowed": 405,
    "invalid_operation": 409,
    "config_invalid": 422,
    "api_rate_limit": 429,
    "internal": 500,
    "database": 500,
    "redis_service": 500,
    "all_strategies_failed": 502,
}


def status_of(error: ServiceError, overrides: Mapping[str, int] | None = None) -> int:
    """Return the status of the error itself, else the endpoint's override, else that of its type."""
    return error.status_hint or (overrides or {}).get(error.error_type) or STATUS[error.error_type]


def error_response(error: ServiceError, overrides: Mapping[str, int] | None = None) -> web.Response:
    """Return the response with the envelope `{error: {error_type, message, extra?}, bp_auth?}`."""
    body: dict[str, Any] = {"error_type": error.error_type, "message": str(error)}
    extra = dict(error.extra)
    if error.error_type == "backend unavailable":
        extra.setdefault("retryable", error.retryable)
    if extra:
        body["extra"] = extra
    headers = {}
    if error.retry_after_s is not None:
        headers["Retry-After"] = str(max(1, math.ceil(error.retry_after_s)))
    return web.Response(
        body=dumps({"error": body} if error.bp_auth is None else {"error": body, "bp_auth": error.bp_auth}),
        status=status_of(error, overrides),
        headers=headers,
        content_type="application/json",
    )
