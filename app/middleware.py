"""Around every request: its id, the error envelope, CORS, one access line."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from itertools import chain
from typing import Any

import structlog
from aiohttp import ClientPayloadError, web

from app.endpoint import ENDPOINT
from app.errors import error_response
from app.services import SERVICES
from app.state import APP_ID, ARRIVED, REQUEST_ID, USER_ID
from storage.kinds.apps import APPS
from streams.metrics import Counts, Times
from streams.wire.errors import InvalidParameter, ServiceError
from streams.wire.ids import REQUEST_ID as REQUEST_ID_OF_CALLS
from streams.wire.ids import request_id

log = structlog.get_logger()

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
REQUESTS = Counts("parley_requests", "Requests by endpoint and status", ["method", "endpoint", "status"])
SECONDS = Times(
    "parley_request_seconds",
    "Time to the end of an answer that is no stream",
    ["method", "endpoint"],
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)
_HEADERS_BYTES = 16 * 1024
_CLIENT_GONE = 499
"""In the access line alone: nobody is there to see it."""
_REST_S = 10
_REST_BYTES = 16 * 1024 * 1024
_EXPOSED = "X-Service-Stream-Id, X-Service-Conversation-Id, X-Request-Id, Retry-After"


@web.middleware
async def around(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Name a request, answer whatever it comes to, tell of it, and read what the client still sends.

    The caller's `X-Request-Id`, or one of ours, is in every answer and every log line.
    """
    request[ARRIVED] = time.monotonic()
    request[REQUEST_ID] = named = request_id(request.headers.get("X-Request-Id"))
    REQUEST_ID_OF_CALLS.set(named)
    response = await _enveloped(request, handler)
    _tell(request, response)
    if request.can_read_body and not request.content.is_eof():
        await _read_rest(request, response)
    return response


async def _read_rest(request: web.Request, response: web.StreamResponse) -> None:
    """After an early answer read the rest of the upload and throw it away, so that the client sees the answer."""
    try:
        await response.prepare(request)
        await response.write_eof()
        async with asyncio.timeout(_REST_S):
            rest = 0
            async for piece in request.content.iter_any():
                rest += len(piece)
                if rest > _REST_BYTES:
                    break
    except (TimeoutError, ConnectionError, ClientPayloadError, web.RequestPayloadError):
        pass  # the connection is closed, by them or by us


def _tell(request: web.Request, response: web.StreamResponse) -> None:
    """One line and one count per request. The query is left out: it may hold what nobody should log."""
    row = request.get(ENDPOINT)
    path = row.path if row else "none"
    seconds = time.monotonic() - request[ARRIVED]
    count(request.method, path, status=response.status)
    if row is not None and not row.stream:
        SECONDS.add(seconds, request.method, path)
    if not (row and row.quiet):
        log.info(
            "request",
            method=request.method,
            path=request.path,
            status=response.status,
            ms=round(seconds * 1000, 1),
            app_id=request.get(APP_ID),
            user_id=request.get(USER_ID),
        )


def count(method: str, path: str, *, status: int) -> None:
    """Count a request; `path` is that of its row in the route table."""
    REQUESTS.add(1, method, path, str(status))


async def _enveloped(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Turn whatever fails into the envelope. A response that has begun is never patched: it is cut."""
    try:
        _check_head(request)
        return preflight(request) if request.method == "OPTIONS" else await handler(request)
    except ServiceError as error:
        if error.__cause__ is not None:
            log.warning("request.failed", path=request.path, error=str(error), cause=repr(error.__cause__))
        return _answered(request, error)
    except web.HTTPMethodNotAllowed as error:
        fault = ServiceError(f"use {', '.join(sorted(error.allowed_methods))}", error_type="method_not_allowed")
        response = _answered(request, fault)
        response.headers["Allow"] = error.headers["Allow"]
        return response
    except web.HTTPNotFound:
        return _answered(request, ServiceError("there is no such path", error_type="not_found"))
    except web.HTTPRequestEntityTooLarge:
        return _answered(
            request, ServiceError("body is too large", error_type="invalid_parameter", status_hint=413)
        )
    except web.HTTPException:
        raise
    except Exception as error:  # noqa: BLE001 - logged there, unless the client is gone
        return _crashed(request, error)


def _crashed(request: web.Request, error: Exception) -> web.Response:
    if isinstance(error, ConnectionError) and (request.transport is None or request.transport.is_closing()):
        return web.Response(status=_CLIENT_GONE)
    log.error("request.crashed", method=request.method, path=request.path, exc_info=error)
    return _answered(request, ServiceError("the server failed"))


def _check_head(request: web.Request) -> None:
    """Limits of what stands before the body, for all endpoints."""
    if sum(len(name) + len(value) + len(": \r\n") for name, value in request.raw_headers) > _HEADERS_BYTES:
        raise InvalidParameter(f"header block exceeds {_HEADERS_BYTES} bytes")
    for name, value in chain(request.match_info.items(), request.query.items()):
        if "\0" in value:
            raise InvalidParameter(f"{name} must not hold the character U+0000")
        if "\0" in name:
            raise InvalidParameter("query must not hold the character U+0000")


def _answered(request: web.Request, error: ServiceError) -> web.Response:
    if request.writer.output_size > 0 and request.transport is not None:
        request.transport.abort()
    row = request.get(ENDPOINT)
    return error_response(error, row.statuses if row else None)


async def on_prepare(request: web.Request, response: web.StreamResponse) -> None:
    """Headers that stand on every answer, streams too."""
    response.headers["Server"] = "parley"
    if (given := request.get(REQUEST_ID)) is not None:
        response.headers["X-Request-Id"] = given
    if (origin := request.headers.get("Origin")) and _allowed(request, origin):
        response.headers.setdefault("Access-Control-Allow-Origin", origin)
        response.headers.setdefault("Access-Control-Expose-Headers", _EXPOSED)
        response.headers["Vary"] = ", ".join(filter(None, (response.headers.get("Vary"), "Origin")))


def preflight(request: web.Request) -> web.Response:
    """The answer to `OPTIONS`: what a page of an allowed origin may send."""
    headers: dict[str, str] = {}
    if (origin := request.headers.get("Origin")) and _allowed(request, origin):
        headers = {
            "Access-Control-Allow-Methods": "GET, POST, PUT, DELETE",
            "Access-Control-Allow-Headers": request.headers.get("Access-Control-Request-Headers", "*"),
            "Access-Control-Max-Age": "600",
        }
    return web.Response(status=204, headers=headers)


def _allowed(request: web.Request, origin: str) -> bool:
    """By the app's config. A preflight names no app: any app's origin will do, the request itself is checked."""
    configs = request.app[SERVICES].configs
    app_id: Any = request.get(APP_ID) or request.headers.get("X-Service-App-Id")
    apps = configs.apps() if app_id is None and request.method == "OPTIONS" else [app_id or "default"]
    for name in apps:
        if configs.exists(APPS, name):
            origins = configs.singleton(APPS, name).cors.origins
            if "*" in origins or origin in origins:
                return True
    return False
