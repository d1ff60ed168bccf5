"""The streams over HTTP: admitted, served as Server-Sent Events, resumed, cancelled (§4.17, 4.19)."""

import asyncio
import string
import time
from collections.abc import Coroutine
from contextlib import AsyncExitStack, suppress
from typing import Any

from aiohttp import web
from pydantic import Field

from actors.actor import Actor, Play
from actors.context import Owner, Stop, StreamContext
from actors.mailbox import Attach, Cancel, Detach
from actors.receipt import Receipt
from actors.relay import MOST_READERS, Span, cancel, has_whole_input, too_many_readers
from actors.spiller import Spiller
from actors.supervisor import Supervisor
from app.answering import add_headers
from app.endpoint import KNOWN, Call, json_response
from app.services import Services
from storage.admission import Asked, Found, Place
from storage.kinds.limits import Limits
from storage.spilled import SpilledLog
from streams.log import EventLog, Followable, Gone
from streams.sse import EventStream
from streams.tasks import background
from streams.wire.codec import dumps
from streams.wire.errors import InvalidParameter, ItemNotFound, StoreError, Unavailable
from streams.wire.ids import is_id, new_id, sha256_hex
from streams.wire.model import Model

_MARGIN_S = 60
_REPEAT_WAITS_S = 5
_ASK_AGAIN_S = 0.1
_DIGITS = 15
_KEY_CHARACTERS = frozenset(string.ascii_letters + string.digits + string.punctuation)


async def open_actor(
    call: Call,
    play: Play,
    *,
    kind: str,
    conversation_id: str | None = None,
    asked: Asked | None = None,
    readable: bool = True,
    seen_running: bool = False,
) -> Actor | Found:
    """Admit a stream and run it; where the same was asked for before, the stream that answers it.

    `InvalidOperation`, `RateLimited` or `Unavailable` where there is no place. `seen_running`: the conversation
    had a running turn just now; if Valkey admits another one all the same, the row of that turn decides.

    A stream whose client is lost before its input is whole cannot answer a repeat of its request. So a repeat
    waits, for at most 5 s, until that input is whole, or until the stream has ended and released the key.
    """
    until, before = time.monotonic() + _REPEAT_WAITS_S, ""
    while True:
        opened = await _open_once(
            call,
            play,
            kind=kind,
            conversation_id=conversation_id,
            asked=asked,
            readable=readable,
            seen_running=seen_running,
        )
        if not isinstance(opened, Found):
            return opened
        left_s = until - time.monotonic()
        if left_s <= 0 or await _has_whole_input(call, opened, within_s=left_s):
            return opened
        if opened.stream_id == before:
            await asyncio.sleep(_ASK_AGAIN_S)
        before = opened.stream_id


async def _has_whole_input(call: Call, found: Found, *, within_s: float) -> bool:
    """Whether the stream can answer a repeat. False: it may end without an answer, or has just ended so.

    Waits for a stream of this process. True also where the stream's process does not answer.
    """
    services, owner = call.services, Owner(call.app_id, call.caller.user)
    if (actor := services.supervisor.find(found.stream_id, owner)) is not None:
        return await has_whole_input(actor, within_s=within_s)
    if found.process == services.heartbeat.process:
        return False
    return await services.relay.has_whole_input(owner, found)


async def _open_once(
    call: Call,
    play: Play,
    *,
    kind: str,
    conversation_id: str | None,
    asked: Asked | None,
    readable: bool,
    seen_running: bool,
) -> Actor | Found:
    services, limits = call.services, call.app_limits
    owner = Owner(call.app_id, call.caller.user)
    place = Place(owner.app_id, owner.user_id, new_id(), conversation_id, asked)
    longest_s = longest_stream_s(limits)
    readable_s = limits.readable_s if readable else 0
    known = call.request[KNOWN]
    taking = services.places.take(place, limit=limits.streams_per_user, lifetime_s=longest_s)
    try:
        # while that is under way the rest is made
        log = EventLog(keep_bytes=limits.log_bytes, lag_bytes=limits.lag_bytes)
        ctx = StreamContext(
            place.stream_id,
            owner,
            request_id=known.request_id,
            resources=services.resources,
            receipt=Receipt(known.arrived, waited_s=known.waited_s),
            log=log,
            longest_s=longest_s,
            answer_bytes=limits.answer_bytes,
            on_end=services.traces.of_request(call.request.headers) if services.traces else None,
        )
        held = _Held(services, place, ctx, keep_bytes=limits.log_bytes, readable_s=readable_s)
        actor = Actor(
            ctx,
            play,
            kind=kind,
            conversation_id=conversation_id,
            spiller=held.spiller,
            release=held.give_back,
            stream_s=limits.stream_s,
            resume_grace_s=limits.resume_grace_s,
            readable_s=readable_s,
        )
        if found := await _taken(taking, services, place, longest_s=longest_s, seen_running=seen_running):
            return found
        services.supervisor.check_owner(
            owner,
            per_user=limits.streams_per_user,
            per_app=limits.streams_per_app,
            elsewhere=services.heartbeat.elsewhere[owner.app_id],
        )
        services.supervisor.check_open(limit=limits.streams_per_process)
        if readable:
            _check_readers(call, owner)
    except BaseException:
        taking.close()
        await services.places.give_back(place, readable_s=0)
        raise
    services.supervisor.start(actor)
    return actor


def _check_readers(call: Call, owner: Owner) -> None:
    """Refuse another event stream where there are too many. Every stream that may run may also be read."""
    limits = call.app_limits
    call.services.supervisor.check_readers(
        owner,
        per_user=max(limits.readers_per_user, limits.streams_per_user),
        per_process=max(limits.readers_per_process, limits.streams_per_process),
    )


class _Held:
    """A stream's place, and where its log goes when its last reader does."""

    __slots__ = ("_ctx", "_keep_bytes", "_place", "_readable_s", "_readable_until", "_services")

    def __init__(
        self, services: Services, place: Place, ctx: StreamContext, *, keep_bytes: int, readable_s: float
    ) -> None:
        self._services = services
        self._place = place
        self._ctx = ctx
        self._keep_bytes = keep_bytes
        self._readable_s = readable_s
        self._readable_until: float | None = None
        """On the monotonic clock; unset while the stream runs."""

    async def give_back(self) -> None:
        readable_s = 0 if self._ctx.stop is Stop.ABORTED else self._readable_s
        self._readable_until = time.monotonic() + readable_s
        await self._services.places.give_back(self._place, readable_s=readable_s)

    def spiller(self) -> Spiller:
        spilled = SpilledLog(
            self._services.valkey,
            app_id=self._place.app_id,
            user_id=self._place.user_id,
            stream_id=self._place.stream_id,
            keep_bytes=self._keep_bytes,
            keep_s=self._keep_s,
        )
        return Spiller(self._ctx.log, spilled)

    def _keep_s(self) -> float:
        """How long the spilled log is kept from now on; once the stream has ended, what is left of `readable_s`."""
        if self._readable_until is None:
            return self._ctx.longest_s + self._readable_s
        return self._readable_until - time.monotonic()


def longest_stream_s(limits: Limits) -> float:
    """No stream under these limits holds its turn for longer."""
    return limits.stream_s + _MARGIN_S


async def _taken(
    taking: Coroutine[Any, Any, Found | None],
    services: Services,
    place: Place,
    *,
    longest_s: float,
    seen_running: bool,
) -> Found | None:
    """Have the place that is asked for.

    The row of a running turn guards it while Valkey is away, and after Valkey has lost the key of that turn.
    """
    try:
        found = await taking
    except StoreError:
        found, seen_running = None, True
    if found is None and seen_running and place.conversation_id is not None:
        await services.turns.check_free(place.app_id, place.conversation_id, longest_s=longest_s)
    return found


def asked_under_key(call: Call, parameters: Model) -> Asked | None:
    """The request's `Idempotency-Key` with a fingerprint of its parameters; none where it has no key."""
    key = call.request.headers.get("Idempotency-Key")
    if key is None:
        return None
    if not 1 <= len(key) <= 255 or not _KEY_CHARACTERS.issuperset(key):
        raise InvalidParameter("Idempotency-Key must be 1 to 255 visible ASCII characters")
    path = call.endpoint.path
    return Asked(sha256_hex(f"{path} {key}".encode()), sha256_hex(dumps(parameters.model_dump(mode="json"))))


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
    call: Call, found: Found, *, after: int = 0, pump: Coroutine[Any, Any, None] | None = None
) -> web.StreamResponse:
    """Send what `found` has said behind id `after`, then what it says; `pump` takes an input that is not needed."""
    owner, supervisor = Owner(call.app_id, call.caller.user), call.services.supervisor
    _check_readers(call, owner)
    supervisor.count_reader(owner, 1)
    try:
        return await _read_again(call, owner, found, after=after, pump=pump)
    finally:
        supervisor.count_reader(owner, -1)


async def _read_again(
    call: Call, owner: Owner, found: Found, *, after: int, pump: Coroutine[Any, Any, None] | None
) -> web.StreamResponse:
    actor = call.services.supervisor.find(found.stream_id, owner)
    if actor is not None:
        if actor.readers >= MOST_READERS:
            raise too_many_readers()
        span = Span(actor.log.dropped + 1, actor.log.last_id, actor.log.closed)
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
    found: Found,
    source: Followable,
    after: int,
    *,
    span: Span,
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
        place = Place(owner.app_id, owner.user_id, found.stream_id, found.conversation_id)
        await call.services.places.give_back(place, readable_s=call.app_limits.readable_s)
    return json_response({})


async def _find(call: Call) -> Found:
    """The stream that the path names: one of the caller's."""
    services, stream_id = call.services, call.path["stream_id"]
    owner = Owner(call.app_id, call.caller.user)
    if (actor := services.supervisor.find(stream_id, owner)) is not None:
        return Found(stream_id, services.heartbeat.process, actor.conversation_id)
    found = await services.places.find(owner.app_id, owner.user_id, stream_id) if is_id(stream_id) else None
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
