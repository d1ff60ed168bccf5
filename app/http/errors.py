"""The errors that the HTTP layer raises, and the response to an error: status, envelope and headers (§7)."""

import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from aiohttp import web

from storage.accounts.users import User
from streams.metrics import CounterMetric
from streams.wire.codec import dumps
from streams.wire.disclosure import told_extra, told_message
from streams.wire.errors import (
    BackendUnavailable,
    InvalidParameter,
    ItemNotFound,
    NotFound,
    ServiceError,
    listed,
)

ErrorType = type[ServiceError]
Statuses = Mapping[ErrorType, int]
"""HTTP statuses that replace the usual ones. They apply to subclasses that do not set a status."""


class InvalidApiVersion(ServiceError):
    """`X-Service-Api-Version` is not a version of the interface."""

    error_type = "invalid_api_version"
    status = 400


class PathNotFound(NotFound):
    """There is nothing at this path."""

    def __init__(self, path: str) -> None:
        super().__init__(f"there is no such path: {listed([path])}")


class MethodNotAllowed(ServiceError):
    """The path does not have this method. `Allow` has those that it has."""

    error_type = "method_not_allowed"
    status = 405


class HeadTimeout(InvalidParameter):
    """The head of the request was not complete in time."""

    status = 408


class HostUnknown(InvalidParameter):
    """`Host` names another server, from whose pages those of a development server are protected."""

    status = 421


class TransferCodingUnsupported(InvalidParameter):
    """The server does not support the `Transfer-Encoding`."""

    status = 501


class HttpVersionUnsupported(InvalidParameter):
    """The server does not support the version of HTTP."""

    status = 505


class UserNotFound(ItemNotFound):
    """No user has this `user_id`."""


class DeactivationPending(ServiceError):
    """The account is frozen until its deactivation. `extra` states when that is.

    `deactivate_left_sec` are the seconds until then, `deactivate_time_ms` is its Unix time in milliseconds, and
    `pending_dur_sec` is for how long an account is frozen.
    """

    error_type = "account.deactivate_pending_user"
    status = 400

    def __init__(self, user: User, *, now: datetime) -> None:
        assert user.freeze_time is not None, "a check constraint requires it for frozen users"
        assert user.close_time is not None, "a check constraint requires it for frozen users"
        extra = {
            "deactivate_left_sec": max(0, int((user.close_time - now).total_seconds())),
            "deactivate_time_ms": int(user.close_time.timestamp() * 1000),
            "pending_dur_sec": int((user.close_time - user.freeze_time).total_seconds()),
        }
        super().__init__("the account is scheduled for deactivation", extra=extra)


_RETRY_BACKEND_S = 5
"""`Retry-After` of the failure of a service that has not named a time itself."""
ERRORS = CounterMetric("parley_errors", "Error responses by type", ["type"])


def status_of(error: ErrorType, statuses: Statuses) -> int:
    """Return the status of an error at an endpoint with these `statuses`."""
    for kind in error.__mro__:
        if kind in statuses:
            return statuses[kind]
        if "status" in vars(kind):
            break
    return error.status


def has_retry_after(error: ErrorType) -> bool:
    """Return whether responses to this error have `Retry-After`."""
    return error.retry_after_s is not None or issubclass(error, BackendUnavailable)


def error_response(error: ServiceError, statuses: Statuses, *, in_full: bool = False) -> web.Response:
    """Return the response with the envelope `{error: {error_type, message, extra?}, bp_auth?}`.

    `in_full`: with the details of faults of configs.
    """
    body: dict[str, Any] = {"error_type": error.error_type, "message": told_message(error, in_full=in_full)}
    extra, retry_after_s = told_extra(error, in_full=in_full), error.retry_after_s
    if isinstance(error, BackendUnavailable):
        extra.setdefault("retryable", error.retryable)
        retry_after_s = _RETRY_BACKEND_S if retry_after_s is None else retry_after_s
    if extra:
        body["extra"] = extra
    ERRORS.add(1, error.error_type)
    headers = {"Cache-Control": "no-store"}
    if retry_after_s is not None:
        headers["Retry-After"] = str(max(1, math.ceil(retry_after_s)))
    return web.Response(
        body=dumps({"error": body} if error.bp_auth is None else {"error": body, "bp_auth": error.bp_auth}),
        status=status_of(type(error), statuses),
        headers=headers,
        content_type="application/json",
    )
