"""The error responses of an endpoint in the OpenAPI document (§7)."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from pydantic import Field

from app.http import auth, server_tokens, signatures
from app.http.caller import Access
from app.http.endpoint import API_VERSION, BODILESS, Endpoint
from app.http.errors import error_response, status_of
from app.http.inputs import Input, Source
from app.http.openapi.schemas import Schema, Schemas
from app.http.paths import APP_ID, USER_ID, is_server_path, names_in
from storage.kinds.limits import Limits
from storage.users import User
from streams.wire.codec import loads
from streams.wire.errors import (
    AuthFailed,
    ConfigInvalid,
    InvalidParameter,
    PermissionDenied,
    RateLimited,
    ServiceError,
    StoreAway,
    StoreError,
    TooLarge,
    Unavailable,
)
from streams.wire.model import Model

_NOW = datetime(2026, 11, 21, 9, tzinfo=UTC)
_FROZEN_USER = User(
    uid="",
    status="frozen",
    create_time=_NOW,
    name="",
    cuid="",
    freeze_time=_NOW - timedelta(days=5),
    close_time=_NOW + timedelta(days=10),
)
FROZEN = auth.deactivate_pending(_FROZEN_USER, now=_NOW)
"""The error for a frozen user, at every endpoint without `frozen_allowed`."""

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
    """Only in errors of binding: the credential of the account that has the identity already."""


def error_responses(row: Endpoint, schemas: Schemas, path: str) -> dict[str, Any]:
    """Return the error responses of an operation, by status."""
    statuses, by_status = row.area.statuses, dict[int, list[ServiceError]]()
    for error in errors_of(row, path):
        by_status.setdefault(status_of(error, statuses), []).append(error)
    return {str(status): _response(by_status[status], statuses, schemas) for status in sorted(by_status)}


def errors_of(row: Endpoint, path: str) -> Iterator[ServiceError]:
    """Yield an example of each error that a call of `path` may get, in the order of the checks."""
    access, s2s = row.area.access, is_server_path(path)
    yield ServiceError(f"X-Service-Api-Version must be {API_VERSION}", error_type="invalid_api_version")
    if access is Access.ADMIN:
        yield AuthFailed("Authorization is missing or wrong")
    else:
        source = APP_ID if access is Access.WEBHOOK else "X-Service-App-Id"
        yield ServiceError(f"{source} names no app", error_type="app_not_found")
        yield ConfigInvalid("limits default: body_bytes must be an integer")
        yield from _of_server(row, path) if s2s else ()
        if not s2s or row.area.accepts_session:
            yield from _of_session(row)
    yield from _of_input(row)
    if access is not Access.PUBLIC:
        yield StoreError("the database refused a statement")
        yield StoreAway("the database is not reachable", retry_after_s=1)
    if row.limit is not None or s2s:
        yield RateLimited("more than 200 calls in 2 s", retry_after_s=1)
    yield from row.docs.errors
    yield ServiceError("the server failed")


def _of_server(row: Endpoint, path: str) -> Iterator[ServiceError]:
    area = row.area
    yield server_tokens.refused()
    yield server_tokens.expired()
    yield PermissionDenied(f"scope of {server_tokens.HEADER} does not cover {area.scope}")
    yield PermissionDenied(f"sub of {server_tokens.HEADER} is not the user of this call")
    if USER_ID in names_in(path):
        if area.unknown_user_error is not None:
            yield ServiceError("user_id names no user", error_type=area.unknown_user_error, status_hint=404)
            yield from () if area.frozen_allowed else (FROZEN,)
    elif area.access is Access.SESSION and not area.accepts_session:
        yield auth.invalid_session()
    if area.single_use_token:
        yield Unavailable(
            "the server cannot check at the moment whether the token was used before", retry_after_s=1
        )


def _of_session(row: Endpoint) -> Iterator[ServiceError]:
    area = row.area
    if area.access in {Access.PUBLIC, Access.WEBHOOK}:
        return
    if area.access is Access.SESSION:
        yield auth.invalid_session()
        if not area.frozen_allowed:
            yield FROZEN
    yield AuthFailed(f"{signatures.HEADER} is missing or wrong")
    if area.accepts_session:
        yield PermissionDenied(f"{auth.SESSION_HEADER} does not belong to the user in the path")


def _of_input(row: Endpoint) -> Iterator[ServiceError]:
    body, query = row.inputs.body, row.inputs.query
    yield InvalidParameter("Content-Encoding is not supported in requests")
    if row.method not in BODILESS and (body is None or body.source is not Source.CHUNKED):
        yield TooLarge(f"body exceeds {row.body_bytes or Limits().body_bytes} bytes")
    if body is not None and body.source is not Source.RAW_BODY:
        yield from _validation_error(body, b"{}", b"0")
    if query is not None:
        yield from _validation_error(query, b"{}")


def _validation_error(given: Input, *bodies: bytes) -> Iterator[InvalidParameter]:
    """Yield the validation error for the first of `bodies` that the model rejects."""
    for body in bodies:
        try:
            given.model.read(body)
        except InvalidParameter as error:
            yield InvalidParameter(error.what)
            return


def _response(errors: Sequence[ServiceError], statuses: Mapping[str, int], schemas: Schemas) -> dict[str, Any]:
    types = list(dict.fromkeys(error.error_type for error in errors))
    described: dict[str, Any] = {
        "description": "\n".join(f"- {error}" for error in errors),
        "content": {
            "application/json": {
                "schema": _narrowed(schemas.response(ErrorReply), types),
                "examples": {str(error): {"value": _body(error, statuses)} for error in errors},
            }
        },
    }
    if any(error.retry_after_s is not None for error in errors):
        described["headers"] = {"Retry-After": _RETRY_AFTER}
    return described


def _narrowed(reply: Schema, types: Sequence[str]) -> Schema:
    return {**reply, "properties": {"error": {"properties": {"error_type": {"enum": list(types)}}}}}


def _body(error: ServiceError, statuses: Mapping[str, int]) -> Any:
    body = error_response(error, statuses).body
    assert isinstance(body, bytes), "the envelope is encoded JSON"
    return loads(body)
