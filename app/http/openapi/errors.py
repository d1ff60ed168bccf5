"""The errors of an endpoint in the OpenAPI document (§7): its error responses, and those of its `error` events."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from pydantic import Field

from app.http.errors import ErrorType, has_retry_after, status_of
from app.http.openapi.schemas import Schema, Schemas
from app.http.rows.endpoint import Endpoint
from app.http.rows.row_errors import errors_of
from streams.wire.model import Model

_RETRY_AFTER = {"description": "Seconds to wait before a retry.", "schema": {"type": "integer"}}


class ErrorBody(Model):
    error_type: str
    message: str = Field(examples=["invalid_parameter: text is required"])
    """`<error_type>: <what is wrong>`."""
    extra: dict[str, Any] | None = None
    """Further details, such as `retryable`."""


class BpAuth(Model):
    """A short-lived credential for a login without a new authorization at the platform."""

    bp_auth_token: str
    expire_at_ms: int


class ErrorReply(Model):
    """The body of every error response."""

    error: ErrorBody
    bp_auth: BpAuth | None = None
    """Only in errors of binding: the credential of the account to which the identity already belongs."""


def error_responses(row: Endpoint, schemas: Schemas, path: str) -> dict[str, Any]:
    """Return the error responses of an operation, by status."""
    by_status: dict[int, list[ErrorType]] = {}
    for error in dict.fromkeys(errors_of(row, path)):
        by_status.setdefault(status_of(error, row.area.statuses), []).append(error)
    pages: dict[str, Any] = {} if row.area.error_page is None else {"text/html": {}}
    return {str(status): _response(by_status[status], schemas, pages) for status in sorted(by_status)}


def described(errors: Iterable[ErrorType], *, written: Callable[[str], str] = str) -> str:
    """Return a Markdown list of error types by name, as they are `written`, and their meanings."""
    lines = {f"- `{written(error.error_type)}`: {_meaning(error)}" for error in errors}
    return "\n".join(sorted(lines))


def narrowed(reply: Schema, types: Iterable[str]) -> Schema:
    """Return the schema of an error, with only these error types."""
    return {**reply, "properties": {"error": {"properties": {"error_type": {"enum": list(dict.fromkeys(types))}}}}}


def _meaning(error: ErrorType) -> str:
    return " ".join((error.__doc__ or "").split())


def _response(errors: Sequence[ErrorType], schemas: Schemas, pages: dict[str, Any]) -> dict[str, Any]:
    types = [error.error_type for error in errors]
    response: dict[str, Any] = {
        "description": described(errors),
        "content": {"application/json": {"schema": narrowed(schemas.response(ErrorReply), types)}, **pages},
    }
    if any(map(has_retry_after, errors)):
        response["headers"] = {"Retry-After": _RETRY_AFTER}
    return response
