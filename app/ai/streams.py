"""The streams over HTTP: a chunked request in, Server-Sent Events out (§4.17, 4.19)."""

from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

from aiohttp import web

from actors.actor import Actor, Play
from actors.context import Owner, StreamContext
from actors.mailbox import Attach, Cancel, Detach
from actors.receipt import Receipt
from app.endpoint import Call
from app.services import Services
from app.state import ARRIVED, WAITED
from storage import conversations
from storage.admission import Place
from streams.events import Event
from streams.log import EventLog
from streams.sse import EventStream
from streams.tasks import background
from streams.wire.ids import new_id

_MARGIN_S = 60


async def open_actor(call: Call, play: Play, *, kind: str, conversation_id: str | None = None) -> Actor:
    """Admit a stream and run it: `InvalidOperation`, `RateLimited` or `Unavailable` where there is no place."""
    services, limits = call.services, call.app_limits
    owner = Owner(call.app_id, call.caller.user)
    place = Place(owner.app_id, owner.user_id, new_id(), conversation_id)
    longest_s = limits.stream_s + _MARGIN_S
    try:
        held = await services.places.take(place, limit=limits.streams_per_user, lifetime_s=longest_s)
        if not held and conversation_id is not None:
            await _check_turn(services, owner, conversation_id, longest_s=longest_s)
        services.supervisor.check_owner(owner, per_user=limits.streams_per_user, per_app=limits.streams_per_app)
        services.supervisor.check_open(limit=limits.streams_per_process)
    except BaseException:
        await services.places.give_back(place)
        raise

    def context(emit: Callable[[Event], Awaitable[None]]) -> StreamContext:
        return StreamContext(
            place.stream_id,
            owner,
            request_id=call.request_id,
            resources=services.resources,
            receipt=Receipt(call.request[ARRIVED], waited_s=call.request.get(WAITED, 0.0)),
            emit=emit,
            longest_s=longest_s,
            answer_bytes=limits.answer_bytes,
        )

    actor = Actor(
        context,
        play,
        kind=kind,
        log=EventLog(keep_bytes=limits.log_bytes, lag_bytes=limits.lag_bytes),
        release=partial(services.places.give_back, place),
        stream_s=limits.stream_s,
        resume_grace_s=limits.resume_grace_s,
    )
    services.supervisor.start(actor)
    return actor


async def _check_turn(services: Services, owner: Owner, conversation_id: str, *, longest_s: float) -> None:
    """While Valkey is away the row of a running turn guards it."""
    async with services.database.connection() as conn:
        if await conversations.turn_runs(conn, owner.app_id, conversation_id, longest_s=longest_s):
            raise conversations.turn_under_way()


async def serve(
    call: Call,
    actor: Actor,
    *,
    headers: dict[str, str] | None = None,
    pump: Coroutine[Any, Any, None] | None = None,
) -> web.StreamResponse:
    """Send the actor's events while `pump` feeds it. A reader who leaves before the input is whole ends it."""
    limits = call.app_limits
    response = EventStream(
        {"X-Service-Stream-Id": actor.stream_id, **(headers or {})},
        send_timeout_s=limits.send_timeout_s,
        ping_after_s=limits.ping_after_s,
    )
    actor.tell(Attach())
    try:
        async with AsyncExitStack() as stack:
            if pump is not None:
                await stack.enter_async_context(background(pump))
            await response.prepare(call.request)
            actor.ctx.receipt.mark("admission")
            await response.send_all(actor.log, 0)
    except ConnectionError:
        if not actor.ctx.input.complete:
            actor.tell(Cancel(aborted=True))
    finally:
        actor.tell(Detach())
    return response
