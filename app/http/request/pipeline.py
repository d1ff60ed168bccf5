"""Request pipeline: request id, routing, error envelope, CORS, metrics and the access log."""

import asyncio
import time
from collections.abc import Awaitable, Callable, MutableMapping
from itertools import chain
from types import CoroutineType
from typing import Any

import structlog
from aiohttp import ClientPayloadError, HttpVersion10, HttpVersion11, web

from app.http.callers.limits import COUNTS, headers_of
from app.http.errors import (
    HttpVersionUnsupported,
    MethodNotAllowed,
    PathNotFound,
    TransferCodingUnsupported,
    error_response,
)
from app.http.request.development import check_host
from app.http.request.held_bodies import release_body
from app.http.request.large_responses import is_large, release, send_large
from app.http.rows.endpoint import REQUEST_CONTEXT, RequestContext
from app.http.rows.row_errors import response_to
from app.http.wire.aiohttp_server import drop_handler, respond_with_http_1_1, set_match
from app.http.wire.framing import HEADER_BLOCK_BYTES, HEADER_BLOCK_FAULT, NOT_HTTP, BrokenBody
from app.observing.logs import LineRate
from app.services import SERVICES
from app.version import VERSION_HEADER, version
from storage.configs.kinds.apps import APPS
from streams.metrics import CounterMetric, HistogramMetric
from streams.wire.errors import InternalError, InvalidParameter, ServiceError, TooLarge
from streams.wire.ids import REQUEST_ID as REQUEST_ID_OF_CALLS
from streams.wire.ids import request_id

log = structlog.get_logger()

REQUESTS = CounterMetric("parley_requests", "Requests by endpoint and status", ["method", "endpoint", "status"])
SECONDS = HistogramMetric(
    "parley_request_seconds",
    "Time to the end of a response that is not a stream",
    ["method", "endpoint"],
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)
_MAPPED_STATUSES = frozenset({404, 405, 413})
"""Statuses of aiohttp's exceptions that have an error class. Others mean that the request is not valid HTTP."""
_CLIENT_GONE = 499
"""Only for the access log: the client has disconnected and receives no response."""
_DEVELOPMENT = "/dev/"
_REST_S = 10
_REST_BYTES = 16 * 1024 * 1024
_PATH_CHARACTERS = 256
_EXPOSED = (
    "X-Service-Stream-Id, X-Service-Conversation-Id, X-Request-Id, Retry-After, RateLimit, RateLimit-Policy, "
    "Idempotent-Replayed"
)


_VERSION = HttpVersionUnsupported("the version of HTTP must be 1.1 or 1.0")
_CODING = TransferCodingUnsupported("Transfer-Encoding must be chunked")
_anonymous_lines = LineRate(100, "request.lines_dropped")


def request_pipeline(application: web.Application) -> Callable[[Any], Awaitable[web.StreamResponse]]:
    """Return the coroutine function that handles every request of `application`.

    It assigns the request id, dispatches to the handler, maps exceptions to the error envelope, logs and counts the
    result, and reads the rest of an unfinished upload. It does the routing of `web.Application` in one coroutine,
    because many requests wait at once and each further coroutine costs memory.
    """
    router = application.router

    async def handle(request: web.Request) -> web.StreamResponse:
        given_id = request_id(request.headers.get("X-Request-Id"))
        context = request[REQUEST_CONTEXT] = RequestContext(given_id, time.monotonic())
        REQUEST_ID_OF_CALLS.set(given_id)
        match = await router.resolve(request)
        set_match(request, match, application)
        if (fault := _framing_fault(request)) is not None:
            return malformed(request, context, fault)
        try:
            if request.headers.get("Expect"):
                await match.expect_handler(request)
                await request.writer.drain()
            _check_head(request)
            if request.method == "OPTIONS":
                response: web.StreamResponse = preflight(request)
            elif match.http_exception is not None:
                response = _unroutable(request, match)
            else:
                result: Any = await match.handler(request)
                response = await result if isinstance(result, CoroutineType) else result
            if is_large(response, request.method):
                await send_large(request, response)
        except Exception as error:  # noqa: BLE001 - unexpected ones are logged and answered with `internal`
            if isinstance(error, web.RequestPayloadError) or (
                isinstance(error, web.HTTPException) and error.status not in _MAPPED_STATUSES
            ):
                return malformed(request, context, error)
            response = _failed(request, error)
        finally:
            release(request)
            release_body(request)
        _log_and_count(request, response, context)
        if request.can_read_body and not request.content.is_eof():
            await _read_rest(request, response)
        return response

    return handle


def malformed(request: web.BaseRequest, context: RequestContext, error: BaseException | None) -> web.Response:
    """Return the response to a request that is not valid HTTP. The connection closes after it."""
    match error:
        case ServiceError():
            fault = error
        case BrokenBody():
            fault = error.fault
        case _:
            fault = NOT_HTTP
    log_anonymous("request.malformed", request_id=context.request_id, exception=error and type(error).__name__)
    response = error_response(fault, {})
    count(request.method, "none", status=response.status)
    response.force_close()
    return response


def log_anonymous(event: str, **fields: Any) -> None:
    """Log an event that anybody can cause without an account. The rate of such lines is limited."""
    if _anonymous_lines.admits():
        log.info(event, **fields)


def _framing_fault(request: web.Request) -> ServiceError | None:
    """Return an error if the HTTP version or the transfer coding is not supported, so that reading on is unsafe."""
    version = request.version
    coding = request.headers.get("Transfer-Encoding")
    if version != HttpVersion11 and version != HttpVersion10:  # noqa: PLR1714 - faster than a tuple
        respond_with_http_1_1(request)
        return _VERSION
    if coding is not None and (coding.strip().lower() != "chunked" or version == HttpVersion10):
        return _CODING if version == HttpVersion11 else NOT_HTTP  # HTTP/1.0 has no codings (RFC 9112 §6.1)
    return None


async def _read_rest(request: web.Request, response: web.StreamResponse) -> None:
    """Read and discard the rest of an upload after an early response, so that the client receives the response.

    Many clients read nothing before they have sent everything. So a body that is a little too large is read to its
    end, whatever the limit of the endpoint is.
    """
    row = request[REQUEST_CONTEXT].endpoint
    most = _REST_BYTES + ((row.body_bytes or 0) if row is not None else 0)
    try:
        await response.prepare(request)
        await response.write_eof()
        async with asyncio.timeout(_REST_S):
            rest = 0
            async for piece in request.content.iter_any():
                rest += len(piece)
                if rest > most:
                    break
    except (TimeoutError, ConnectionError, ClientPayloadError, web.RequestPayloadError):
        pass  # The client has closed the connection, or aiohttp closes it now.


def _log_and_count(request: web.Request, response: web.StreamResponse, context: RequestContext) -> None:
    """Log and count a request. The query is not logged, because it may hold secrets."""
    row = context.endpoint
    path = row.path if row else "none"
    seconds = time.monotonic() - context.arrived
    count(request.method, path, status=response.status)
    if row is not None and not row.is_stream:
        SECONDS.add(seconds, request.method, path)
    if row is None or row.area.access_log:
        (log.info if context.authenticated else log_anonymous)(
            "request",
            method=request.method,
            path=_path(request),
            status=response.status,
            ms=round(seconds * 1000, 1),
            app_id=context.app_id,
            user_id=context.user_id,
            **(context.log_fields or {}),
        )


def _path(request: web.Request) -> str:
    """Return the path for a log line, shortened because the client chooses its length."""
    return request.path[:_PATH_CHARACTERS]


def count(method: str, path: str, *, status: int) -> None:
    """Count a request. `path` is the path of its row in the route table."""
    REQUESTS.add(1, method, path, str(status))


def _failed(request: web.Request, error: Exception) -> web.Response:
    """Return the error response to an exception. If a response has already begun, the connection is aborted."""
    match error:
        case ServiceError():
            if error.__cause__ is not None:
                log.warning("request.failed", path=_path(request), error=str(error), cause=repr(error.__cause__))
            fault = error
        case web.HTTPMethodNotAllowed():
            methods = ", ".join(sorted(error.allowed_methods))
            fault = MethodNotAllowed(f"use {methods}")
        case web.HTTPNotFound():
            fault = PathNotFound(request.path)
        case web.HTTPRequestEntityTooLarge():
            fault = TooLarge("body is too large")
        case ConnectionError() if request.transport is None or request.transport.is_closing():
            return web.Response(status=_CLIENT_GONE)
        case _:
            log.error("request.crashed", method=request.method, path=_path(request), exc_info=error)
            fault = InternalError()
    if request.writer.output_size > 0 and request.transport is not None:
        request.transport.abort()
    response = response_to(request, fault)
    if isinstance(error, web.HTTPMethodNotAllowed):
        response.headers["Allow"] = error.headers["Allow"]
    return response


def _unroutable(request: web.Request, match: web.UrlMappingMatchInfo) -> web.Response:
    """Return the response to a path or method without an endpoint.

    It leaves no reference cycle, because under a flood the garbage collector would spend tens of milliseconds on
    them. The exception is not raised, because its traceback would refer to the request, which refers to the
    exception. The handler of aiohttp's route is deleted because it is a bound method of that route.
    """
    assert match.http_exception is not None, "the caller has checked this"
    drop_handler(match)
    return _failed(request, match.http_exception)


def _check_head(request: web.Request) -> None:
    """Check the limits on the head of a request that apply to all endpoints."""
    lines = request.raw_headers
    if sum(map(len, chain.from_iterable(lines))) + len(": \r\n") * len(lines) > HEADER_BLOCK_BYTES:
        raise InvalidParameter(HEADER_BLOCK_FAULT)
    if request.path.startswith(_DEVELOPMENT) and request.app[SERVICES].settings.development:
        check_host(request, request.app[SERVICES].settings)


async def on_prepare(request: web.Request, response: web.StreamResponse) -> None:
    """Add the common headers. aiohttp calls this before it sends a head."""
    add_headers(request, response.headers)


def add_headers(request: web.Request, headers: MutableMapping[str, str]) -> None:
    """Add the headers that every response has, including streams.

    A row whose response may be cached sets `Cache-Control` itself. By default, no cache keeps a response: it may be
    about a user, and caches would be allowed to keep it without a rule (RFC 9111 §4.2.2).
    """
    headers["Server"] = "parley"
    headers.setdefault("Cache-Control", "no-store")
    context = request[REQUEST_CONTEXT]
    headers["X-Request-Id"] = context.request_id
    if context.endpoint is not None and context.endpoint.area.role is not None:
        headers[VERSION_HEADER] = version()
    if (counts := request.get(COUNTS)) is not None:
        headers.update(headers_of(counts))
    if (origin := request.headers.get("Origin")) and _allowed(request, origin):
        headers.setdefault("Access-Control-Allow-Origin", origin)
        headers.setdefault("Access-Control-Expose-Headers", _EXPOSED)
        headers["Vary"] = ", ".join(filter(None, (headers.get("Vary"), "Origin")))


def preflight(request: web.Request) -> web.Response:
    """Return the response to `OPTIONS`, with CORS headers if the origin is allowed."""
    headers: dict[str, str] = {}
    if (origin := request.headers.get("Origin")) and _allowed(request, origin):
        headers = {
            "Access-Control-Allow-Methods": "GET, POST, PUT, DELETE",
            "Access-Control-Allow-Headers": request.headers.get("Access-Control-Request-Headers", "*"),
            "Access-Control-Max-Age": "600",
        }
    return web.Response(status=204, headers=headers)


def _allowed(request: web.Request, origin: str) -> bool:
    """Return whether the app's config allows `origin`, which may not read what is under `/dev`.

    A preflight does not name an app, so an origin that any app allows passes. The actual request is checked again.
    """
    if request.path.startswith(_DEVELOPMENT):
        return False
    configs = request.app[SERVICES].configs
    app_id: Any = request[REQUEST_CONTEXT].app_id or request.headers.get("X-Service-App-Id")
    apps = configs.apps() if app_id is None and request.method == "OPTIONS" else [app_id or "default"]
    for name in apps:
        if configs.exists(APPS, name):
            origins = configs.singleton(APPS, name).cors.origins
            if "*" in origins or origin in origins:
                return True
    return False
