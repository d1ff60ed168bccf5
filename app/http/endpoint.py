"""A row of the route table, what its handler gets, and the path from one to the other."""

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
from storage.kinds.limits import LIMITS, Limits
from streams.wire.codec import dumps, loads_request
from streams.wire.errors import InvalidParameter, ServiceError, TooLarge
from streams.wire.model import Model

API_VERSION = "1"
DEFAULT_APP = "default"


@dataclass(frozen=True, slots=True)
class Call:
    """What a handler gets. `app_limits` are the app's, read once a call."""

    request: web.Request
    services: Services
    endpoint: "Endpoint"
    app_limits: Limits
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
"""What goes on answering, once the handler's own frames are gone: they need not wait with a stream."""
Handler = Callable[..., Awaitable[Model | web.StreamResponse | DeferredResponse | None]]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One operation of the interface.

    The handler is called with the call and, where the row names a `body` or `query` model, with its value.
    It returns a model (200 with its JSON), nothing (200, zero bytes), a response of its own or what goes on to it.
    `stream`: the handler reads the body itself, and checks its signature. `raw_body`: it gets `bytes`.
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
    """Group of the reference page, and the `scope` that a server token needs."""
    limit: str | None = None
    """Name of a rate in the kind `limits`, counted by user, else by address."""
    statuses: Mapping[str, int] = field(default_factory=dict)
    """Where this endpoint's status for an error type differs."""
    body_bytes: int | None = None
    stream: bool = False
    access_log: bool = True
    """Whether calls leave no access line."""
    frozen_allowed: bool = False
    """Whether an account that waits for its deactivation may still call it."""
    unknown_user_error: str = "item_not_found"
    """Error type for an unknown user in an S2S path."""
    single_use_token: bool = False
    """Whether a server token needs a `jti` here."""
    accepts_session: bool = False
    """Whether the S2S path takes the C2S header pair too (the account endpoints)."""
    docs: Docs = NO_DOCS


@dataclass(slots=True)
class RequestContext:
    """What is context of a request while it is answered: for log lines, metrics and errors."""

    request_id: str
    arrived: float
    """`time.monotonic()` when the head was there."""
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
    """Spent waiting for the client's body before the handler began."""


REQUEST_CONTEXT = web.RequestKey("context", RequestContext)


def handler_of(row: Endpoint, path: str) -> Callable[[web.Request], Awaitable[Any]]:
    """The handler of a row at `path`, one of its two: it returns a response or a `DeferredResponse`.

    The order of checks is that of the interface: first failure answers.
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
    """The whole body, within the endpoint's limit. An encoded one is refused: nothing is decompressed."""
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
    """Check `X-Service-Sign` over `raw` where the caller's access asks for it."""
    if call.caller.must_sign:
        await auth.check_sign(call.request, call.services, app_id=call.app_id, raw=raw)


async def check_user(call: Call) -> None:
    """Check that the user of an S2S path exists and may call."""
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
