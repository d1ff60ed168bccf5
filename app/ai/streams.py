"""The streams over HTTP: a chunked request in, Server-Sent Events out (§4.17, 4.19)."""

from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

import structlog
from aiohttp import web

from actors.actor import Actor, Play
from actors.context import Owner, StreamContext
from actors.mailbox import Attach, Cancel, Detach
from actors.receipt import Receipt
from app.endpoint import Call
from app.services import Services
from app.state import ARRIVED
from storage.admission import Place, admit, release
from streams.events import Event
from streams.log import EventLog
from streams.sse import EventStream
from streams.tasks import background
from streams.wire.errors import StoreError
from streams.wire.ids import new_id

log = structlog.get_logger()

_LIFETIME_MARGIN_S = 60


async def open_actor(call: Call, play: Play, *, kind: str, conversation_id: str | None = None) -> Actor:
    """Admit a stream and run it: `InvalidOperation`, `RateLimited` or `Unavailable` where there is no place."""
    services, limits = call.services, call.app_limits
    place = Place(call.app_id, call.caller.user, new_id(), conversation_id)
    held = await _admitted(services, place, limit=limits.streams_per_user, lifetime_s=limits.stream_s)
    try:
        services.supervisor.check_open(limit=limits.streams_per_process)
    except BaseException:
        await held()
        raise

    def context(emit: Callable[[Event], Awaitable[None]]) -> StreamContext:
        return StreamContext(
            place.stream_id,
            Owner(call.app_id, call.caller.user),
            request_id=call.request_id,
            resources=services.resources,
            receipt=Receipt(call.request[ARRIVED]),
            emit=emit,
        )

    actor = Actor(
        context,
        play,
        kind=kind,
        log=EventLog(keep_bytes=limits.log_bytes, lag_bytes=limits.lag_bytes),
        release=held,
        stream_s=limits.stream_s,
        resume_grace_s=limits.resume_grace_s,
    )
    services.supervisor.start(actor)
    return actor


async def _admitted(
    services: Services, place: Place, *, limit: int, lifetime_s: float
) -> Callable[[], Awaitable[None]]:
    """Take a place; what gives it back. Streams go on while Valkey is away: the turn's row guards the turn."""
    try:
        await admit(services.valkey, place, limit=limit, lifetime_s=lifetime_s + _LIFETIME_MARGIN_S)
    except StoreError as error:
        log.warning("admission.skipped", stream_id=place.stream_id, error=str(error))
        return _nothing_held
    return partial(_given_back, services, place)


async def _given_back(services: Services, place: Place) -> None:
    try:
        await release(services.valkey, place)
    except StoreError as error:
        log.warning("release.failed", stream_id=place.stream_id, error=str(error))


async def _nothing_held() -> None:
    return None


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
