"""The streams over HTTP: served as Server-Sent Events, resumed, cancelled (§4.17, 4.19)."""

import asyncio
from collections.abc import Coroutine
from contextlib import AsyncExitStack, suppress
from typing import Any

from aiohttp import web
from pydantic import Field

from actors.actor import Actor
from actors.context import Owner
from actors.mailbox import Attach, Cancel, Detach
from actors.relay import MOST_READERS, LogRange, cancel, too_many_readers
from actors.supervisor import Supervisor
from app.ai.opening import check_readers, longest_stream_s
from app.http.endpoint import Call, json_response
from app.http.pipeline import add_headers
from storage.admission import Slot, StreamLocation
from streams.log import Followable, Gone
from streams.sse import EventStream
from streams.tasks import background
from streams.wire.errors import InvalidParameter, ItemNotFound, Unavailable
from streams.wire.ids import is_id
from streams.wire.model import Model

_DIGITS = 15


def serve(
    call: Call, actor: Actor, *, pump: Coroutine[Any, Any, None] | None = None
) -> Coroutine[Any, Any, web.StreamResponse]:
    """Send the actor's events while `pump` feeds it. A reader who leaves before the input is whole ends it."""
    response = _event_stream(call, actor.stream_id, actor.conversation_id)
    return _served(call.request, call.services.supervisor, actor, response, pump)


async def _served(
    request: web.Request,
    supervisor: Supervisor,
    actor: Actor,
    response: EventStream,
    pump: Coroutine[Any, Any, None] | None,
) -> web.StreamResponse:
    supervisor.count_reader(actor.ctx.owner, 1)
    actor.tell(Attach())
    try:
        if pump is not None and request.content.is_eof():
            await pump  # it waits for nothing
            pump = None
            await asyncio.sleep(0)  # the play goes first, so that it waits for others soon
        actor.ctx.receipt.mark("admission")
        if pump is None:
            await response.prepare(request)
            await response.send_all(actor.log, 0)
        else:
            async with background(pump):
                await response.prepare(request)
                await response.send_all(actor.log, 0)
    except ConnectionError:
        if not actor.ctx.input.complete:
            actor.tell(Cancel(aborted=True))
    finally:
        actor.tell(Detach())
        supervisor.count_reader(actor.ctx.owner, -1)
    return response


async def serve_again(
    call: Call, found: StreamLocation, *, after: int = 0, pump: Coroutine[Any, Any, None] | None = None
) -> web.StreamResponse:
    """Send what `found` has said behind id `after`, then what it says; `pump` takes an input that is not needed."""
    owner, supervisor = Owner(call.app_id, call.caller.user), call.services.supervisor
    check_readers(call, owner)
    supervisor.count_reader(owner, 1)
    try:
        return await _read_again(call, owner, found, after=after, pump=pump)
    finally:
        supervisor.count_reader(owner, -1)


async def _read_again(
    call: Call, owner: Owner, found: StreamLocation, *, after: int, pump: Coroutine[Any, Any, None] | None
) -> web.StreamResponse:
    actor = call.services.supervisor.find(found.stream_id, owner)
    if actor is not None:
        if actor.readers >= MOST_READERS:
            raise too_many_readers()
        span = LogRange(actor.log.dropped + 1, actor.log.last_id, actor.log.closed)
        actor.tell(Attach())
        try:
            return await _send_behind(call, found, actor.log, after, span=span, pump=pump)
        finally:
            actor.tell(Detach())
    limits = call.app_limits
    keep_s = longest_stream_s(limits) + limits.readable_s
    async with call.services.relay.attached(owner, found, keep_bytes=limits.log_bytes, keep_s=keep_s) as remote:
        return await _send_behind(call, found, remote, after, span=remote.span, pump=pump)


async def _send_behind(
    call: Call,
    found: StreamLocation,
    source: Followable,
    after: int,
    *,
    span: LogRange,
    pump: Coroutine[Any, Any, None] | None,
) -> web.StreamResponse:
    async with AsyncExitStack() as stack:
        if pump is not None:
            await stack.enter_async_context(background(pump))
        if after + 1 < span.first:
            raise Gone(f"events after {after} are no longer kept")
        if after > span.last and not span.lost:
            raise InvalidParameter(f"Last-Event-ID is over {span.last}, the last id of the stream")
        if span.closed and after == span.last:
            return web.Response(status=204)
        response = _event_stream(call, found.stream_id, found.conversation_id)
        with suppress(ConnectionError):
            await response.prepare(call.request)
            await response.send_all(source, after)
        return response


def _event_stream(call: Call, stream_id: str, conversation_id: str | None) -> EventStream:
    limits = call.app_limits
    headers = {"X-Service-Stream-Id": stream_id}
    if conversation_id is not None:
        headers["X-Service-Conversation-Id"] = conversation_id
    response = EventStream(headers, send_timeout_s=limits.send_timeout_s, ping_after_s=limits.ping_after_s)
    add_headers(call.request, response.headers)
    return response


async def resume(call: Call) -> web.StreamResponse:
    """Read a stream on.

    Its events behind `Last-Event-ID` (default 0), then live, on any server of the deployment. A stream can be read
    until two minutes after its end. 204: it has ended with that event.
    """
    after = _last_event_id(call.request)
    return await serve_again(call, await _find(call), after=after)


_LONGEST_MS = 24 * 60 * 60 * 1000
"""No stream lasts longer."""


class CancelQuery(Model):
    heard_ms: int | None = Field(default=None, ge=0, le=_LONGEST_MS, strict=False)
    """How many milliseconds of the answer's audio were played: the record keeps the words spoken by then."""


async def cancel_stream(call: Call, query: CancelQuery) -> web.Response:
    """Cancel a stream.

    What was said is kept, and the next turn may begin, once this is answered. So does a voice client interrupt.
    """
    owner, found = Owner(call.app_id, call.caller.user), await _find(call)
    actor = call.services.supervisor.find(found.stream_id, owner)
    if actor is not None:
        await cancel(actor, query.heard_ms)
    elif not await call.services.relay.cancel(owner, found, query.heard_ms):
        if not await call.services.heartbeat.dead([found.process]):
            raise Unavailable("the process that has the stream did not answer", retry_after_s=1)
        slot = Slot(owner.app_id, owner.user_id, found.stream_id, found.conversation_id)
        await call.services.admissions.give_back(slot, readable_s=call.app_limits.readable_s)
    return json_response({})


async def _find(call: Call) -> StreamLocation:
    """The stream that the path names: one of the caller's."""
    services, stream_id = call.services, call.path["stream_id"]
    owner = Owner(call.app_id, call.caller.user)
    if (actor := services.supervisor.find(stream_id, owner)) is not None:
        return StreamLocation(stream_id, services.heartbeat.process, actor.conversation_id)
    found = await services.admissions.find(owner.app_id, owner.user_id, stream_id) if is_id(stream_id) else None
    if found is None:
        if is_id(stream_id) and await services.heartbeat.may_lack_streams():
            raise Unavailable(
                "Valkey was not available; the stream may not be registered again yet", retry_after_s=1
            )
        raise ItemNotFound("stream_id names no stream of this user that can still be read")
    return found


def _last_event_id(request: web.Request) -> int:
    given = request.headers.get("Last-Event-ID", "0").strip()
    if not (given.isascii() and given.isdecimal() and len(given) <= _DIGITS):
        raise InvalidParameter("Last-Event-ID must be the id of an event")
    return int(given)
