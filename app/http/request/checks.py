"""The checks between a request and the handler of its row, in the order that the interface defines."""

from collections.abc import Awaitable, Callable
from itertools import chain
from typing import Any

from aiohttp import web

from app.http.callers import auth, limits, operators
from app.http.callers.caller import Access, Caller
from app.http.errors import InvalidApiVersion, PathNotFound
from app.http.paths import APP_ID, is_server_path
from app.http.request.bodies import read_json, read_parameters, read_whole
from app.http.rows import idempotency
from app.http.rows.endpoint import API_VERSION, DEFAULT_APP, REQUEST_CONTEXT, Call, Endpoint, RequestContext
from app.http.rows.inputs import Chunked, Input, Source
from app.http.rows.replies import DeferredResponse, response_to
from app.services import SERVICES, Services
from storage.configs.kinds.apps import APPS
from storage.configs.kinds.limits import LIMITS, Limits
from streams.wire.errors import AppNotFound, InvalidParameter, ServiceError, listed

_APP_HEADER = "X-Service-App-Id"


def handler_of(row: Endpoint, path: str) -> Callable[[web.Request], Awaitable[Any]]:
    """Return the aiohttp handler for `row` at `path`, which is one of its paths.

    The first check that fails becomes the response.
    """
    on_server_path = is_server_path(path)
    handler, limit, limit_field = row.handler, row.limit, row.limit_field()

    async def handle(request: web.Request) -> web.StreamResponse | DeferredResponse:
        context = request[REQUEST_CONTEXT]
        context.endpoint = row
        services = request.app[SERVICES]
        if row.direct is None:  # Otherwise the response is the same whatever is asked.
            _check_characters(request)
        version = request.headers.get("X-Service-Api-Version", API_VERSION)
        if version != API_VERSION and not row.area.ignores_app:
            raise InvalidApiVersion(f"X-Service-Api-Version must be {API_VERSION}")
        call = await _identified(row, request, services, context, on_server_path=on_server_path)
        if row.exists is not None and not row.exists(services, call.app_id):
            raise PathNotFound(request.path)
        counted = services, call.app_limits, request, call.caller
        try:
            given = await _read(call)
            key = None if row.inputs.transaction is None else idempotency.request_key_of(call, given)
            stored = None if key is None else await idempotency.find_response(services, key)
        except ServiceError:
            # The invalid field may be the one that `limit` counts by.
            await limits.report(*counted, limit=limit if limit_field is None else None)
            raise
        value = None if limit_field is None else getattr(given[limit_field[0].name], limit_field[1])
        if stored is not None:
            await limits.report(*counted, limit=limit, value=value)
            return stored
        await limits.check(*counted, limit=limit, value=value)
        if row.inputs.transaction is not None:
            return await idempotency.answer_once(call, key, given)
        return response_to(await handler(call, **given))

    return handle


def _check_characters(request: web.Request) -> None:
    if "%00" not in request.raw_path:
        return
    for name, value in chain(request.match_info.items(), request.query.items()):
        if "\0" in value:
            raise InvalidParameter(f"{name} must not contain the character U+0000")
        if "\0" in name:
            raise InvalidParameter("query must not contain the character U+0000")


async def _identified(
    row: Endpoint, request: web.Request, services: Services, context: RequestContext, *, on_server_path: bool
) -> Call:
    access = row.area.access
    in_header = None if row.area.ignores_app else request.headers.get(_APP_HEADER)
    if row.area.role is not None:
        operator = await operators.identify(request, services, needed=row.area.role)
        context.authenticated = True
        return Call(request, services, row, Limits(), Caller(app_id=in_header or DEFAULT_APP, operator=operator))
    if access is Access.PUBLIC and in_header is None:
        return Call(request, services, row, Limits(), Caller(app_id=DEFAULT_APP))
    in_path = access is Access.WEBHOOK
    named = request.match_info[APP_ID] if in_path else in_header
    app_id = DEFAULT_APP if named is None else named
    if not services.configs.exists(APPS, app_id):
        what = f"app {listed([app_id])} does not exist"
        raise AppNotFound(what if in_path else f"{_APP_HEADER}: {what}")
    context.app_id = app_id
    caller = Caller(app_id=app_id)
    if not in_path:
        caller = await auth.identify(request, services, row.area, app_id=app_id, on_server_path=on_server_path)
    context.user_id = caller.user_id
    context.authenticated = caller.user_id is not None or caller.server_key is not None
    return Call(request, services, row, services.configs.singleton(LIMITS, app_id), caller)


async def _read(call: Call) -> dict[str, Any]:
    """Read and check the inputs of the handler. Return them by the names of its parameters."""
    inputs, request = call.endpoint.inputs, call.request
    given = await _read_body(call, inputs.body)
    if inputs.query is not None:
        given[inputs.query.name] = inputs.query.model.of(dict(request.query))
    if call.caller.server_key is not None:
        request[REQUEST_CONTEXT].user = await auth.check_user(call.services, call.caller, call.endpoint.area)
    if inputs.path is not None:
        given[inputs.path.name] = inputs.path.model.of(dict(request.match_info))
    return given


async def _read_body(call: Call, body: Input | None) -> dict[str, Any]:
    """Read the body, check its signature, and return the argument that holds it, by its name.

    The signature of a chunked body covers its parameters.
    """
    rest = None
    if body is not None and body.source is Source.CHUNKED:
        raw, rest = await read_parameters(call)
    else:
        raw = await read_whole(call)
    value = {}
    if body is not None and body.source is not Source.RAW_BODY and raw and not raw.isspace():
        value = await read_json(call, raw, exact=body.model.exact_numbers)
    if call.caller.must_sign:
        await auth.check_sign(call.request, call.services, app_id=call.app_id, raw=raw)
    if body is None:
        return {}
    if body.source is Source.RAW_BODY:
        return {body.name: raw}
    parameters = body.model.of(value)
    return {body.name: parameters if rest is None else Chunked(parameters, rest)}
