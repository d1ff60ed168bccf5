"""Failures that a client may be told: the error envelope of the interface (§7)."""

import re
from collections.abc import Mapping
from typing import Any

_SHORTEST_SECRET = 5


class ServiceError(Exception):
    """A failure with its word on the wire. `str()` is the whole message, `<error_type>: <what>`.

    `status_hint` overrides the HTTP status that the error type has in general.
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
    ) -> None:
        if error_type is not None:
            self.error_type = error_type
        if status_hint is not None:
            self.status_hint = status_hint
        self.what = what
        self.extra = dict(extra or {})
        self.retry_after_s = retry_after_s
        super().__init__(f"{self.error_type}: {what}")

    def redact(self, secret: str) -> None:
        """Take `secret`, and what no line of text holds, out of the words that came from outside.

        In whatever case it stands there, and where the words were cut in the middle of it.
        """
        self.what = _without(secret, "".join(letter if letter.isprintable() else " " for letter in self.what))
        self.extra = {
            name: _without(secret, value) if isinstance(value, str) else value for name, value in self.extra.items()
        }
        self.args = (f"{self.error_type}: {self.what}",)


def _without(secret: str, words: str) -> str:
    if len(secret) <= _SHORTEST_SECRET:
        return words
    words = re.sub(re.escape(secret), "***", words, flags=re.IGNORECASE)
    lowered, beginning = words.lower(), secret.lower()
    for length in range(len(secret) - 1, _SHORTEST_SECRET, -1):
        if lowered.endswith(beginning[:length]):
            return f"{words[:-length]}***"
    return words


class InvalidParameter(ServiceError):
    error_type = "invalid_parameter"


class TooLarge(InvalidParameter):
    """A body, audio or text over its limit."""

    status_hint = 413


class ConfigInvalid(ServiceError):
    """A fault in a named config; `what` names the config and the field."""

    error_type = "config_invalid"


class ItemNotFound(ServiceError):
    error_type = "item_not_found"


class InvalidOperation(ServiceError):
    """Something else holds what is asked for (another turn, another body under the same key)."""

    error_type = "invalid_operation"
    status_hint = 409


class AuthFailed(ServiceError):
    """A missing or wrong header of ours; `what` names the header and never which part of it."""

    error_type = "auth_failed"


class PermissionDenied(ServiceError):
    error_type = "permission_denied"


class RateLimited(ServiceError):
    error_type = "api_rate_limit"
    retryable = True


class Unavailable(ServiceError):
    """This server is draining, full, or something it stands on is away: asking again may help."""

    error_type = "backend unavailable"
    status_hint = 503
    retryable = True


class StoreError(ServiceError):
    """PostgreSQL (`database`) or Valkey (`redis_service`) refused."""

    error_type = "database"


class StoreAway(StoreError):
    """A store was not reached, or has no place for us in time: asking again may help."""

    status_hint = 503
    retryable = True
