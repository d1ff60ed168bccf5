"""What the responses to clients say about errors. In production, they do not say what is wrong with a config.

Names of configs and fields, and whether a secret can be decrypted, are of use to an attacker, and not to a user.
They are for operators, who get them from the log, the admin API and the doctor, and for developers.
"""

from collections.abc import Sequence
from typing import Any

from streams.wire.errors import ConfigInvalid, ServiceError

_CONFIG_FAULT = "a config of this app cannot be used; its operator can read why in the log"


def told_message(error: ServiceError, *, in_full: bool) -> str:
    """Return the message of an error. `in_full`: to an operator or in development."""
    return _told(error.error_type, str(error), in_full=in_full)


def told_cause(error: ServiceError, *, in_full: bool) -> str:
    """Return the message without the error type, as the stored outcome of a task has it."""
    return told_message(error, in_full=in_full).removeprefix(f"{error.error_type}: ")


def told_extra(error: ServiceError, *, in_full: bool) -> dict[str, Any]:
    """Return `extra` of an error."""
    attempts = error.extra.get("attempts")
    return dict(error.extra) | ({"attempts": told_attempts(attempts, in_full=in_full)} if attempts else {})


def told_attempts(attempts: Sequence[dict[str, Any]], *, in_full: bool) -> list[dict[str, Any]]:
    """Return the descriptions of failed attempts."""
    return [
        attempt | {"message": _told(attempt["error_type"], attempt["message"], in_full=in_full)}
        for attempt in attempts
    ]


def _told(error_type: str, message: str, *, in_full: bool) -> str:
    is_hidden = error_type == ConfigInvalid.error_type and not in_full
    return f"{error_type}: {_CONFIG_FAULT}" if is_hidden else message
