"""The errors of an endpoint: those that its row lists, and those of the checks before its handler."""

from collections.abc import Callable, Iterable, Iterator

import structlog
from aiohttp import web

from app.http.callers.area import Area
from app.http.callers.caller import Access
from app.http.callers.console_sessions import CrossSiteRequest, SessionEnded
from app.http.callers.operators import RoleTooLow, TokenExpired, TooManyFailures
from app.http.errors import DeactivationPending, ErrorType, InvalidApiVersion, error_response, status_of
from app.http.html import prefers_html, wants_html
from app.http.paths import USER_ID, is_server_path, names_in
from app.http.rows import idempotency
from app.http.rows.endpoint import REQUEST_CONTEXT, Endpoint
from app.services import SERVICES
from storage.operators.operators import Role
from streams.metrics import CounterMetric
from streams.wire.errors import (
    AppNotFound,
    AuthFailed,
    ConfigInvalid,
    DatabaseError,
    DatabaseUnavailable,
    InternalError,
    InvalidParameter,
    InvalidSession,
    PermissionDenied,
    RateLimited,
    ServiceError,
    StoreError,
    TooLarge,
    Unavailable,
    ValkeyError,
    ValkeyUnavailable,
)
from vendors.errors import VendorError

log = structlog.get_logger()

UNLISTED = CounterMetric(
    "parley_errors_unlisted", "Errors that the row of their endpoint does not list", ["endpoint", "error_type"]
)

ERROR_PAGE: web.AppKey[Callable[[web.Request, int, Endpoint | None], web.Response]] = web.AppKey("error_page")
"""Makes the page that browsers get in place of the error envelope, with this status, at an address of this row."""
_PAGED = frozenset({404, 405})
"""The statuses with such a page."""
_STORES = (DatabaseError, DatabaseUnavailable, ValkeyError, ValkeyUnavailable)
_FAMILIES = (StoreError, VendorError)
"""Errors that a row lists by a base class, because clients handle all of them in the same way. Others are listed by
their own class, whose docstring is their text in the API reference."""


def errors_of(row: Endpoint, path: str) -> Iterator[ErrorType]:
    """Yield each error that a call of `path` may get, in the order of the checks."""
    access, reply = row.area.access, row.inputs.reply
    if not row.area.ignores_app:
        yield InvalidApiVersion
    if row.area.role is not None:
        yield from _of_operator(row)
    elif not row.area.ignores_app:
        yield AppNotFound
        yield ConfigInvalid
        yield from _of_caller(row.area, path)
    yield InvalidParameter
    yield TooLarge
    if access is not Access.PUBLIC:
        yield from _STORES
    if row.inputs.transaction is not None:
        yield from idempotency.ERRORS
    is_large = reply is not None or row.inputs.body is not None
    if row.limit is not None or is_server_path(path) or is_large:
        yield RateLimited
    if is_large:
        yield Unavailable  # Too many large responses are unread, or too many large bodies are unanswered.
    yield from row.errors
    yield InternalError


def _of_operator(row: Endpoint) -> Iterator[ErrorType]:
    yield AuthFailed
    yield SessionEnded
    yield TokenExpired
    yield TooManyFailures
    if row.area.role is not Role.VIEWER:
        yield RoleTooLow
    if row.method not in {"GET", "HEAD"}:
        yield CrossSiteRequest


def _of_caller(area: Area, path: str) -> Iterator[ErrorType]:
    if is_server_path(path):
        yield from _of_server(area, path)
        if not area.accepts_session:
            return
    if area.access in {Access.SIGNED, Access.SESSION}:
        yield AuthFailed
    if area.access is Access.SESSION:
        yield InvalidSession
        if not area.frozen_allowed:
            yield DeactivationPending


def _of_server(area: Area, path: str) -> Iterator[ErrorType]:
    yield AuthFailed
    yield PermissionDenied
    names_user = USER_ID in names_in(path)
    if area.access is Access.SESSION and not names_user:
        yield InvalidSession
    if area.unknown_user_error is not None and (names_user or area.access is Access.SESSION):
        yield area.unknown_user_error
        if not area.frozen_allowed:
            yield DeactivationPending
    if area.single_use_token:
        yield Unavailable


def response_to(request: web.Request, error: ServiceError) -> web.Response:
    """Return the response to an error of an endpoint: the envelope, or a page for browsers if its area has one.

    An error that the row does not list is logged and counted. The access line says what is wrong with a
    config. Responses say it to operators, and to clients only in development.
    """
    context = request[REQUEST_CONTEXT]
    row = context.endpoint
    if row is None:
        return _for_browser(request, error_response(error, {}), None)
    if isinstance(error, ConfigInvalid):
        context.log_fields = {**(context.log_fields or {}), "error": str(error)}
    s2s = is_server_path(request.path)
    path = next((path for path in row.paths if is_server_path(path) is s2s), row.path)
    statuses = row.area.statuses
    status = status_of(type(error), statuses)
    if all(status_of(listed, statuses) != status for listed in _listings(error, errors_of(row, path))):
        _report(row, error)
    in_full = row.area.role is not None or request.app[SERVICES].settings.development
    response = error_response(error, statuses, in_full=in_full)
    if row.area.error_page is None:
        return _for_browser(request, response, row)
    response.headers["Vary"] = "Accept"
    if not wants_html(request):
        return response
    page = row.area.error_page(request, status)
    page.headers["Vary"] = "Accept"
    if retry_after := response.headers.get("Retry-After"):
        page.headers["Retry-After"] = retry_after
    return page


def _for_browser(request: web.Request, response: web.Response, row: Endpoint | None) -> web.Response:
    """Return the error response, or a page in its place if a browser has opened an address without a page."""
    page = request.app.get(ERROR_PAGE)
    if page is None or response.status not in _PAGED or request.method not in {"GET", "HEAD"}:
        return response
    if prefers_html(request):
        response = page(request, response.status, row)
    response.headers["Vary"] = "Accept"
    return response


def check_event(row: Endpoint, error: ServiceError) -> None:
    """Log and count the error of an `error` event that the row does not list."""
    if row.docs.stream is not None and not any(_listings(error, row.docs.stream.errors)):
        _report(row, error)


def _listings(error: ServiceError, errors: Iterable[ErrorType]) -> Iterator[ErrorType]:
    """Yield those of `errors` that document `error`: its class, and base classes of a member of a family."""
    by_base = isinstance(error, _FAMILIES)
    return (listed for listed in errors if listed is type(error) or (by_base and isinstance(error, listed)))


def _report(row: Endpoint, error: ServiceError) -> None:
    UNLISTED.add(1, row.path, error.error_type)
    log.warning("response.unlisted_error", route=row.path, error_type=error.error_type, error=type(error).__name__)
