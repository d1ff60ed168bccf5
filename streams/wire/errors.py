"""Exceptions that are reported to clients in the error envelope of the interface (§7).

Each error is one class. It states the error type and the HTTP status, and its docstring is its description in the
API reference. This module has the errors that several folders raise. Any other is defined where it is raised.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

_MIN_SECRET_CHARACTERS = 6
_NAME_CHARACTERS = 64


class ServiceError(Exception):
    """The base class of all errors that are reported to clients.

    `what` says what is wrong with which field. `str()` returns the complete message, `<error_type>: <what>`.
    `bp_auth` (§2.6) is sent next to `error` in the envelope.
    """

    error_type: ClassVar[str]
    status: ClassVar[int]
    retryable: bool = False
    """Whether the same request may succeed later."""
    retry_after_s: float | None = None
    """Seconds after which to retry, sent as `Retry-After`."""

    def __init__(
        self,
        what: str,
        *,
        extra: Mapping[str, Any] | None = None,
        retry_after_s: float | None = None,
        bp_auth: Mapping[str, Any] | None = None,
    ) -> None:
        self.extra = dict(extra or {})
        self.bp_auth = bp_auth
        if retry_after_s is not None:
            self.retry_after_s = retry_after_s
        self._say(what)

    def prefix(self, prefix: str) -> None:
        """Begin the message with `prefix`, for example with the file that holds the invalid field."""
        self._say(f"{prefix}: {self.what}")

    def redact(self, secret: str) -> None:
        """Replace `secret` with `***` in the message and in string values of `extra`.

        The comparison ignores case, and also finds a secret that is cut off at the end of the text. Unprintable
        characters in the message become spaces.
        """
        self.extra = {
            name: without_secret(secret, value) if isinstance(value, str) else value
            for name, value in self.extra.items()
        }
        self._say(without_secret(secret, _printable(self.what)))

    def _say(self, what: str) -> None:
        self.what = what
        self.args = (f"{self.error_type}: {what}",)


def listed(names: Iterable[str]) -> str:
    """Return names from a request for an error message, separated by commas. Each has at most 64 characters."""
    return ", ".join(_printable(name[:_NAME_CHARACTERS]) or '""' for name in names)


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else " " for char in text)


def without_secret(secret: str, text: str) -> str:
    """Return `text` with `***` for a secret, as `ServiceError.redact` does."""
    if len(secret) < _MIN_SECRET_CHARACTERS:
        return text
    text = re.sub(re.escape(secret), "***", text, flags=re.IGNORECASE)
    lowered, beginning = text.lower(), secret.lower()
    for length in range(len(secret) - 1, _MIN_SECRET_CHARACTERS - 1, -1):
        if lowered.endswith(beginning[:length]):
            return f"{text[:-length]}***"
    return text


class InternalError(ServiceError):
    """The server failed. Its log has the cause."""

    error_type = "internal"
    status = 500

    def __init__(self, what: str = "the server failed", *, extra: Mapping[str, Any] | None = None) -> None:
        super().__init__(what, extra=extra)


class InvalidParameter(ServiceError):
    """A header, a parameter or the body is missing or invalid. The message names the field."""

    error_type = "invalid_parameter"
    status = 400


class TooLarge(InvalidParameter):
    """The body, a text or audio is larger than its limit."""

    status = 413


class AppNotFound(ServiceError):
    """The app does not exist."""

    error_type = "app_not_found"
    status = 400


class ItemNotFound(ServiceError):
    """Something that the request names does not exist, or belongs to another user."""

    error_type = "item_not_found"
    status = 404


class NotFound(ServiceError):
    """There is nothing at this path."""

    error_type = "not_found"
    status = 404


class InvalidOperation(ServiceError):
    """The current state does not allow this operation."""

    error_type = "invalid_operation"
    status = 400


class Conflict(InvalidOperation):
    """Another operation, which may still be running, does not allow this one."""

    status = 409


class ConfigInvalid(ServiceError):
    """A config that the request needs is missing or invalid.

    In development and in the admin API, the message names the config and the field. In production, the log does.
    """

    error_type = "config_invalid"
    status = 422


class AuthFailed(ServiceError):
    """An authentication header is missing or wrong. The message names the header, but not which part is wrong."""

    error_type = "auth_failed"
    status = 401


class InvalidSession(ServiceError):
    """`X-Service-Session-Token` is missing, or its session has ended."""

    error_type = "account.invalid_session"
    status = 400

    def __init__(self, what: str = "X-Service-Session-Token is missing or invalid") -> None:
        super().__init__(what)


class PermissionDenied(ServiceError):
    """The caller is authenticated, but may not make this call, or not for this user."""

    error_type = "permission_denied"
    status = 403


class RateLimited(ServiceError):
    """The caller exceeds a rate limit, or a limit on what it may do at the same time."""

    error_type = "api_rate_limit"
    status = 429
    retryable = True
    retry_after_s = 1


class BackendUnavailable(ServiceError):
    """A service that the server depends on failed. `extra.retryable` says whether a retry may succeed."""

    error_type = "backend unavailable"
    status = 400


class Unavailable(BackendUnavailable):
    """The server is draining or full, or cannot use one of its stores at the moment."""

    status = 503
    retryable = True
    retry_after_s = 1


class StoreError(ServiceError):
    """The base class of errors of PostgreSQL, of Valkey and of the object store."""


class DatabaseError(StoreError):
    """The database refused a statement."""

    error_type = "database"
    status = 500


class ValkeyError(StoreError):
    """Valkey refused a command."""

    error_type = "redis_service"
    status = 500


class StoreUnavailable(StoreError):
    """The base class of errors of a store that is not reachable, or has no free connection in time."""

    status = 503
    retryable = True
    retry_after_s = 1


class DatabaseUnavailable(StoreUnavailable):
    """The database is not available."""

    error_type = DatabaseError.error_type


class ValkeyUnavailable(StoreUnavailable):
    """Valkey is not available."""

    error_type = ValkeyError.error_type
