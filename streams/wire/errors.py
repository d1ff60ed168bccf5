"""Exceptions that are reported to clients in the error envelope of the interface (§7)."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

_SHORTEST_SECRET = 5


class ServiceError(Exception):
    """A failure that is reported to the client.

    `what` says what is wrong. `str()` returns the complete message, `<error_type>: <what>`. `status_hint` overrides
    the usual HTTP status of the error type. `bp_auth` (§2.6) is sent beside `error`.
    """

    error_type: str = "internal"
    status_hint: int | None = None
    retryable: bool = False

    def __init__(
        self,
        what: str,
        *,
        error_type: str | None = None,
        extra: Mapping[str, Any] | None = None,
        retry_after_s: float | None = None,
        status_hint: int | None = None,
        bp_auth: Mapping[str, Any] | None = None,
    ) -> None:
        if error_type is not None:
            self.error_type = error_type
        if status_hint is not None:
            self.status_hint = status_hint
        self.what = what
        self.extra = dict(extra or {})
        self.retry_after_s = retry_after_s
        self.bp_auth = bp_auth
        super().__init__(f"{self.error_type}: {what}")

    def redact(self, secret: str) -> None:
        """Replace `secret` with `***` in the message and in string values of `extra`.

        The comparison ignores case, and also finds a secret that is cut off at the end of the text. Unprintable
        characters in the message become spaces.
        """
        self.what = _without(secret, "".join(char if char.isprintable() else " " for char in self.what))
        self.extra = {
            name: _without(secret, value) if isinstance(value, str) else value for name, value in self.extra.items()
        }
        self.args = (f"{self.error_type}: {self.what}",)


def listed(names: Iterable[str]) -> str:
    """Return names from a request for an error message, separated by commas. Each has at most 64 characters."""
    return ", ".join("".join(char if char.isprintable() else " " for char in name[:64]) for name in names)


def _without(secret: str, text: str) -> str:
    if len(secret) <= _SHORTEST_SECRET:
        return text
    text = re.sub(re.escape(secret), "***", text, flags=re.IGNORECASE)
    lowered, beginning = text.lower(), secret.lower()
    for length in range(len(secret) - 1, _SHORTEST_SECRET, -1):
        if lowered.endswith(beginning[:length]):
            return f"{text[:-length]}***"
    return text


class InvalidParameter(ServiceError):
    error_type = "invalid_parameter"


class TooLarge(InvalidParameter):
    """A body, audio or text over its limit."""

    status_hint = 413


class ConfigInvalid(ServiceError):
    """A named config is invalid. `what` names the config and the field."""

    error_type = "config_invalid"


class ItemNotFound(ServiceError):
    error_type = "item_not_found"


class InvalidOperation(ServiceError):
    """The request conflicts with the current state, such as a running turn or a reused idempotency key."""

    error_type = "invalid_operation"
    status_hint = 409


class AuthFailed(ServiceError):
    """An authentication header is missing or wrong. `what` names the header, but not which part of it is wrong."""

    error_type = "auth_failed"


class PermissionDenied(ServiceError):
    error_type = "permission_denied"


class RateLimited(ServiceError):
    error_type = "api_rate_limit"
    retryable = True


class Unavailable(ServiceError):
    """The server is draining or full, or a service it depends on is unavailable. Retrying may help."""

    error_type = "backend unavailable"
    status_hint = 503
    retryable = True


class StoreError(ServiceError):
    """PostgreSQL (`database`) or Valkey (`redis_service`) returned an error."""

    error_type = "database"


class StoreAway(StoreError):
    """A store could not be reached, or had no free connection in time. Retrying may help."""

    status_hint = 503
    retryable = True
