"""Ids, times and errors of the sandbox's PayPal."""

import secrets
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from vendors.sandbox.calls import Refusal

_ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZ0123456789"
_MESSAGES = {
    400: ("INVALID_REQUEST", "Request is not well-formed, syntactically incorrect, or violates schema."),
    401: ("AUTHENTICATION_FAILURE", "Authentication failed due to missing authorization header, or invalid token."),
    404: ("RESOURCE_NOT_FOUND", "The specified resource does not exist."),
    422: (
        "UNPROCESSABLE_ENTITY",
        "The requested action could not be performed, semantically incorrect, or failed business validation.",
    ),
}


def new_id(length: int = 17) -> str:
    return "".join(secrets.choice(_ALPHABET) for _ in range(length))


def time_text(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def refusal(
    status: int,
    issue: str = "",
    description: str = "",
    *,
    name: str = "",
    at: str = "",
    message: str = "",
    details: Sequence[dict[str, Any]] = (),
    links: Sequence[dict[str, str]] = (),
) -> Refusal:
    """Return an error response. `at` is the JSON pointer of the field at fault. `details` replace the usual one."""
    usual, usual_message = _MESSAGES.get(
        status, ("INTERNAL_SERVER_ERROR", "An internal server error has occurred.")
    )
    detail = {"issue": issue, "description": description or issue, **({"field": at} if at else {})}
    body = {
        "name": name or usual,
        "message": message or usual_message,
        "debug_id": secrets.token_hex(7)[:13],
        "details": details or ([detail] if issue else []),
        "links": list(links),
    }
    return Refusal(status, body)


def not_found() -> Refusal:
    return refusal(404, "INVALID_RESOURCE_ID", "Specified resource ID does not exist. Please check and try again.")
