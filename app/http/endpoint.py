"""A row of the route table, the `Call` that its handler gets, and the checks between them."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from app.http import auth, limits
from app.http.caller import Access, Caller
from app.http.docs import NO_DOCS, Docs
from app.services import SERVICES, Services
from storage.kinds.apps import APPS
from storage.kinds.limits import LIMITS, RATE_NAMES, Limits
from streams.wire.codec import dumps, loads_request
from streams.wire.errors import InvalidParameter, ServiceError, TooLarge
from streams.wire.model import Model

API_VERSION = "1"
DEFAULT_APP = "default"


@dataclass(frozen=True, slots=True)
class Call:
    """One call of an endpoint, as passed to its handler."""

    request: web.Request
    services: Services
    endpoint: "Endpoint"
    app_limits: Limits
    """The limits of the app, read once per call."""
    caller: Caller

    @property
    def app_id(self) -> str:
        return self.caller.app_id

    @property
    def path(self) -> Mapping[str, str]:
        return self.request.match_info

    @property
    def request_id(self) -> str:
        return self.request[REQUEST_CONTEXT].request_id

    def logged_in(self, user_id: str) -> None:
        """Name the user that the call has logged in, for the access line."""
        context = self.request[REQUEST_CONTEXT]
        context.user_id, context.authenticated = user_id, True


DeferredResponse = Coroutine[Any, Any, web.StreamResponse]
"""A coroutine that a handler returns and the pipeline awaits.

The stack frames of the handler are freed first, so that a long stream does not keep them in memory.
"""
Handler = Callable[..., Awaitable[Model | web.StreamResponse | DeferredResponse | None]]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One operation of the interface.

    The handler is called with the `Call` and, if the row names a `body` or `query` model, with its value. It
    returns a model (200 with its JSON), None (200 with an empty body), a response, or a `DeferredResponse`.
    """

    method: str
    path: str
    handler: Handler
    s2s: str | None = None
    access: Access = Access.SESSION
    body: type[Model] | None = None
    query: type[Model] | None = None
    reply: type[Model] | None = None
    tag: str = ""
    """Group on the reference page, and the `scope` that a server token needs."""
    limit: str | None = None
    """Name of a rate in the config kind `limits`. It is counted per user, or per address without a user."""
    statuses: Mapping[str, int] = field(default_factory=dict)
    """HTTP statuses of this endpoint that differ from the usual one of an error type."""
    body_bytes: int | None = None
    """Maximum size of the body; None means the app's limit."""
    stream: bool = False
    """Whether the handler reads the body and checks its signature itself."""
    access_log: bool = True
    """Whether each call writes an access log line."""
    frozen_allowed: bool = False
    """Whether the user of a frozen account may call it."""
    unknown_user_error: str = "item_not_found"
    """Error type when the user in an S2S path does not exist."""
    single_use_token: bool = False
    """Whether a server token must have a `jti`."""
    accepts_session: bool = False
    """Whether the S2S path also accepts a session in place of a server token (the account endpoints)."""
    docs: Docs = NO_DOCS

    def __post_init__(self) -> None:
        if self.limit is not None and self.limit not in RATE_NAMES:
            raise ValueError(f"{self.path}: limit must be one of {', '.join(sorted(RATE_NAMES))}")


@dataclass(slots=True)
class RequestContext:
    """Facts about a request for log lines, metrics and errors, filled in as they become known."""

    request_id: str
    arrived: float
    """`time.monotonic()` when the head had arrived."""
    endpoint: Endpoint | None = None
    app_id: str | None = None
    user_id: str | None = None
    authenticated: bool = False
    """Whether the caller has proved to be a user, an app's server or the operator."""
    unsent_bytes: int = 0
    """Size of its response where that is large, while it is being sent."""
    unsent_caller: str = ""
    """Whom these bytes are counted for."""
    waited_s: float = 0.0
    """Time spent waiting for the client's body, or for the parameters of a stream."""


REQUEST_CONTEXT = web.RequestKey("context", RequestContext)


def handler_of(row: Endpoint, path: str) -> Callable[[web.Request], Awaitable[Any]]:
    """Return the aiohttp handler for `row` at `path`, which is its C2S or its S2S path.

    The checks run in the order that the interface defines; the first failure becomes the response.
    """
    on_server_path = path.startswith(auth.SERVER_PATHS)

    async def handle(request: web.Request) -> web.StreamResponse | DeferredResponse:
        context = request[REQUEST_CONTEXT]
        context.endpoint = row
        services = request.app[SERVICES]
        if request.headers.get("X-Service-Api-Version", API_VERSION) != API_VERSION:
            raise ServiceError(f"X-Service-Api-Version must be {API_VERSION}", error_type="invalid_api_version")
        call = await _identified(row, request, services, context, on_server_path=on_server_path)
        arguments: list[Any] = []
        if not row.stream:
            began = time.monotonic()
            raw = await read_body(call)
            context.waited_s = time.monotonic() - began
            value = loads_request(raw) if row.body is not None and raw.strip() else {}
            await check_sign(call, raw)
            if row.body is not None:
                arguments.append(row.body.of(value))
        if row.query is not None:
            arguments.append(row.query.of(dict(request.query)))
        if not row.stream:
            await check_user(call)
        await limits.check(services, call.app_limits, request, call.caller, name=row.limit)
        return _response(await row.handler(call, *arguments))

    return handle


async def _identified(
    row: Endpoint, request: web.Request, services: Services, context: RequestContext, *, on_server_path: bool
) -> Call:
    app_id = request.headers.get("X-Service-App-Id", DEFAULT_APP)
    if row.access is Access.ADMIN:
        auth.identify_admin(request, services)
        context.authenticated = True
        return Call(request, services, row, Limits(), Caller(app_id=app_id))
    if row.access is Access.PUBLIC and "X-Service-App-Id" not in request.headers:
        return Call(request, services, row, Limits(), Caller(app_id=app_id))
    if not services.configs.exists(APPS, app_id):
        raise ServiceError("X-Service-App-Id names no app", error_type="app_not_found")
    context.app_id = app_id
    caller = await auth.identify(
        request,
        services,
        app_id=app_id,
        on_server_path=on_server_path,
        access=row.access,
        scope=row.tag,
        frozen_allowed=row.frozen_allowed,
        single_use=row.single_use_token,
        accepts_session=row.accepts_session,
    )
    context.user_id = caller.user_id
    context.authenticated = caller.user_id is not None or caller.server_key is not None
    return Call(request, services, row, services.configs.singleton(LIMITS, app_id), caller)


async def read_body(call: Call) -> bytes:
    """Return the whole body. Raises `InvalidParameter` for a body that is encoded, too large or too slow."""
    check_encoding(call.request)
    limit = call.endpoint.body_bytes or call.app_limits.body_bytes
    if (call.request.content_length or 0) > limit:
        raise TooLarge(f"body exceeds {limit} bytes")
    body = bytearray()
    try:
        async with asyncio.timeout(call.app_limits.input_idle_s):
            async for piece in call.request.content.iter_any():
                body += piece
                if len(body) > limit:
                    raise TooLarge(f"body exceeds {limit} bytes")
    except TimeoutError:
        raise InvalidParameter("body timed out") from None
    return bytes(body)


def check_encoding(request: web.Request) -> None:
    if request.headers.get("Content-Encoding", "identity") != "identity":
        raise InvalidParameter("Content-Encoding is not supported in requests")


async def check_sign(call: Call, raw: bytes) -> None:
    """Check `X-Service-Sign` against the body `raw` if the caller has to sign."""
    if call.caller.must_sign:
        await auth.check_sign(call.request, call.services, app_id=call.app_id, raw=raw)


async def check_user(call: Call) -> None:
    """Check that the user in an S2S path exists and may call this endpoint."""
    row = call.endpoint
    await auth.check_user(
        call.services, call.caller, frozen_allowed=row.frozen_allowed, missing=row.unknown_user_error
    )


def _response(reply: Model | web.StreamResponse | DeferredResponse | None) -> web.StreamResponse | DeferredResponse:
    if reply is None:
        return web.Response()
    if isinstance(reply, Model):
        return json_response(reply.model_dump(mode="json", exclude_none=True))
    return reply


def json_response(value: Any, *, status: int = 200) -> web.Response:
    return web.Response(body=dumps(value), status=status, content_type="application/json")
