"""Serving, resuming and cancelling streams over HTTP (§4.17, 4.19)."""

import asyncio
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from typing import Annotated, Any, Literal

from aiohttp import web
from pydantic import AfterValidator, Field

from actors.runtime.actor import Actor
from actors.runtime.context import Owner
from actors.runtime.mailbox import Attach, Cancel, Detach
from actors.runtime.relay import cancel
from actors.runtime.remote_log import MAX_READERS, LogRange, too_many_readers
from actors.runtime.supervisor import Supervisor
from app.ai.upload import discard
from app.http.request.pipeline import add_headers
from app.http.rows.endpoint import Call
from app.http.rows.inputs import Path, Query
from app.http.rows.replies import Empty
from storage.conversations.admission import Slot, StreamLocation
from storage.errors import StreamsMissing
from streams.body import ChunkReader
from streams.log import Followable, Gone
from streams.sse import EventStream
from streams.tasks import background
from streams.wire.errors import InvalidParameter, ItemNotFound, StoreError, Unavailable, listed
from streams.wire.model import Model, QueryInt
from streams.wire.owned import Owned

_DIGITS = 15
_TAKEOVER_S = 5
"""How long to wait until another process that has claimed a stream has started it."""
_RETRY_S = 0.1


class StreamNotFound(ItemNotFound):
    """No stream of the user that can still be read has this `stream_id`."""

    def __init__(self, stream_id: str) -> None:
        super().__init__(f"stream {listed([stream_id])} does not exist, or can no longer be read")


STREAM = Owned(StreamNotFound)


class StreamPath(Model):
    stream_id: Annotated[str, AfterValidator(STREAM.validate)]
    """`X-Service-Stream-Id` of the response that began the stream."""


def serve(
    call: Call, actor: Actor, *, pump: Coroutine[Any, Any, None] | None = None
) -> Coroutine[Any, Any, web.StreamResponse]:
    """Send the events of `actor` while `pump` feeds its input.

    A client that disconnects before the input is complete ends the stream.
    """
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
    actor.send(Attach())
    try:
        if pump is not None and request.content.is_eof():
            await pump  # The whole body has arrived, so this does not wait.
            pump = None
            await asyncio.sleep(0)  # Let the play run first, so that it sends its requests early.
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
            actor.send(Cancel(aborted=True))
    finally:
        actor.send(Detach())
        supervisor.count_reader(actor.ctx.owner, -1)
    return response


async def serve_existing(
    call: Call, location: StreamLocation, *, after: int = 0, unused: ChunkReader | None = None
) -> web.StreamResponse:
    """Send the events of an existing stream after id `after`, then its further events.

    `unused` is the input of a repeated request, which is read and discarded.
    """
    owner, supervisor = Owner(call.app_id, call.caller.user), call.services.supervisor
    supervisor.check_readers(owner, call.app_limits)
    supervisor.count_reader(owner, 1)
    try:
        return await _attach_and_send(call, owner, location, after=after, unused=unused)
    finally:
        supervisor.count_reader(owner, -1)


async def _attach_and_send(
    call: Call, owner: Owner, location: StreamLocation, *, after: int, unused: ChunkReader | None
) -> web.StreamResponse:
    actor = call.services.supervisor.find(location.stream_id, owner)
    if actor is not None:
        if actor.readers >= MAX_READERS:
            raise too_many_readers()
        span = LogRange(actor.log.dropped + 1, actor.log.last_id, actor.log.closed)
        actor.send(Attach())
        try:
            return await _send_after(call, location, actor.log, after, span=span, unused=unused)
        finally:
            actor.send(Detach())
    successor = partial(_successor, call, owner, location)
    async with call.services.relay.attached(owner, location, successor=successor) as remote:
        return await _send_after(call, location, remote, after, span=remote.span, unused=unused)


@asynccontextmanager
async def _successor(
    call: Call, owner: Owner, location: StreamLocation, *, dead: bool
) -> AsyncIterator[Followable | Literal["undecided"] | None]:
    """Open the rest of a stream that its process no longer has: here, or in the process that takes it over."""
    services, until, asked = call.services, time.monotonic() + _TAKEOVER_S, location
    while True:
        try:
            found = await services.takeovers.find(owner, location, call.app_limits, dead=dead)
        except (StoreError, Unavailable):  # The stream is not lost: the next try may succeed.
            yield "undecided"
            return
        if isinstance(found, Actor):
            found.send(Attach())
            try:
                yield found.log
            finally:
                found.send(Detach())
            return
        if found is None and (dead or location is asked):
            yield None
            return
        if (found is not None and found.process == asked.process) or time.monotonic() >= until:
            yield "undecided"
            return
        location = found or location
        successor = partial(_successor, call, owner, location)
        async with services.relay.attached(owner, location, successor=successor) as remote:
            if not remote.span.lost:
                yield remote
                return
            dead = remote.dead
        await asyncio.sleep(_RETRY_S)  # The other process has claimed the stream and has not started it yet.


async def _send_after(
    call: Call,
    location: StreamLocation,
    source: Followable,
    after: int,
    *,
    span: LogRange,
    unused: ChunkReader | None,
) -> web.StreamResponse:
    async with AsyncExitStack() as stack:
        if unused is not None:
            await stack.enter_async_context(background(discard(unused)))
        if after + 1 < span.first:
            raise Gone(after)
        if after > span.last and not (span.lost or span.uncertain):
            raise InvalidParameter(f"Last-Event-ID is greater than {span.last}, the last id of the stream")
        if span.closed and after == span.last:
            return web.Response(status=204)
        response = _event_stream(call, location.stream_id, location.conversation_id)
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


async def resume(call: Call, path: Path[StreamPath]) -> web.StreamResponse:
    """Resume a stream.

    The response has the events after `Last-Event-ID` (0 if it is absent or empty), followed by further events as
    they occur. Any server of the deployment can respond. A stream can be read until two minutes after its end. If
    `Last-Event-ID` is the last event of a finished stream, the response is 204.
    """
    after = _last_event_id(call.request)
    return await serve_existing(call, await _find(call, path.stream_id), after=after)


_MAX_HEARD_MS = 24 * 60 * 60 * 1000
"""An upper bound for the duration of every stream."""


class CancelQuery(Model):
    heard_ms: QueryInt | None = Field(default=None, ge=0, le=_MAX_HEARD_MS)
    """Milliseconds of the answer's audio that were played. The record keeps only the words spoken until then."""


async def cancel_stream(call: Call, path: Path[StreamPath], query: Query[CancelQuery]) -> Empty:
    """Cancel a stream.

    When the response arrives, the answer up to this point is stored and the next turn can begin. Voice clients use
    this when the user interrupts.
    """
    owner, location = Owner(call.app_id, call.caller.user), await _find(call, path.stream_id)
    actor = call.services.supervisor.find(location.stream_id, owner)
    if actor is not None:
        await cancel(actor, query.heard_ms)
    elif location.process == call.services.heartbeat.process:
        return Empty()  # It has ended. An actor that runs would have been found.
    elif not await call.services.relay.cancel(owner, location, query.heard_ms):
        if not await call.services.heartbeat.dead([location.process]):
            raise Unavailable("the process that has the stream did not answer")
        await _cancel_dead(call, owner, location, query.heard_ms)
    return Empty()


async def _cancel_dead(call: Call, owner: Owner, location: StreamLocation, heard_ms: int | None) -> None:
    """Store what a stream of a dead process has said, and end it as cancelled."""
    services, limits = call.services, call.app_limits
    found = await services.takeovers.find(owner, location, limits, dead=True, ends=True)
    if isinstance(found, StreamLocation):
        has_moved = found.process != location.process
        if not (has_moved and await services.relay.cancel(owner, found, heard_ms)):
            raise Unavailable("another process takes over the stream")
        return
    if found is not None:
        await cancel(found, heard_ms)
        return
    slot = Slot(owner.app_id, owner.user_id, location.stream_id, location.conversation_id)
    await services.admissions.release(slot, readable_s=limits.readable_s)


async def _find(call: Call, stream_id: str) -> StreamLocation:
    """Return the location of a stream of the caller."""
    services = call.services
    owner = Owner(call.app_id, call.caller.user)
    if (actor := services.supervisor.find(stream_id, owner)) is not None:
        return StreamLocation(stream_id, services.heartbeat.process, actor.conversation_id)
    location = await services.admissions.find(owner.app_id, owner.user_id, stream_id)
    if location is None and await services.heartbeat.may_lack_streams():
        raise StreamsMissing
    return STREAM.require(stream_id, location)


def _last_event_id(request: web.Request) -> int:
    header = request.headers.get("Last-Event-ID", "").strip() or "0"
    if not (header.isascii() and header.isdecimal() and len(header) <= _DIGITS):
        raise InvalidParameter("Last-Event-ID must be the id of an event")
    return int(header)
