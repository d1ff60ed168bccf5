"""Opening a stream: admits a new one, or finds the one of an earlier request with the same key (§4.17, 4.19)."""

import asyncio
import time
from collections.abc import Coroutine
from dataclasses import dataclass
from functools import partial
from typing import Any

from actors.runtime.actor import Actor, Play
from actors.runtime.context import Owner, Stop, StreamContext
from actors.runtime.log_replication import LogReplicator
from actors.runtime.receipt import Receipt
from actors.runtime.relay import has_whole_input
from app.http.rows.endpoint import REQUEST_CONTEXT, Call, Endpoint
from app.http.rows.idempotency import key_in
from app.http.rows.row_errors import check_event
from app.services import Services
from storage.accounts.ended_sessions import SessionKey
from storage.accounts.sessions import not_ended
from storage.configs.kinds.limits import Limits
from storage.conversations.admission import IdempotencyKey, Slot, StreamLocation
from storage.conversations.detached_logs import DetachedLog
from streams.log import EventLog
from streams.wire.codec import dumps
from streams.wire.errors import InvalidSession, ServiceError, StoreError
from streams.wire.ids import new_id, sha256_hex
from streams.wire.model import Model

_MARGIN_S = 60
_REPEAT_WAIT_S = 5
_RETRY_S = 0.1
_RECHECK_S = 5
"""Less than the time for which processes remember announcements of ended sessions."""


@dataclass(frozen=True, slots=True)
class StreamSpec:
    """The stream that a request asks for.

    `readable`: clients read its events and may resume it. `seen_running`: the conversation had a running turn just
    now. If Valkey admits this stream nevertheless, the database row of that turn decides.
    """

    kind: str
    play: Play
    conversation_id: str | None = None
    idempotency_key: IdempotencyKey | None = None
    readable: bool = True
    seen_running: bool = False


async def open_actor(call: Call, spec: StreamSpec) -> Actor | StreamLocation:
    """Admit a stream and start it. For a repeated request, return the location of the existing stream.

    Raises `TurnRunning`, `KeyReused`, `RateLimited` or `Unavailable` when the stream is not admitted.

    A stream whose client disconnects before its input is complete cannot answer a repeat of its request. Therefore
    a repeat waits, for at most 5 s, until that input is complete or the stream has ended and released the key.
    """
    await _check_session(call)
    deadline, previous_id = time.monotonic() + _REPEAT_WAIT_S, ""
    while True:
        opened = await _open_once(call, spec)
        if not isinstance(opened, StreamLocation):
            return opened
        left_s = deadline - time.monotonic()
        if left_s <= 0 or await _has_whole_input(call, opened, within_s=left_s):
            return opened
        if opened.stream_id == previous_id:
            await asyncio.sleep(_RETRY_S)
        previous_id = opened.stream_id


async def _check_session(call: Call) -> None:
    """Raise `InvalidSession` if the session has ended while its request was sent slowly.

    Announcements of its end are not remembered for as long as a request may take.
    """
    if call.caller.session_id is None or time.monotonic() - call.request[REQUEST_CONTEXT].arrived < _RECHECK_S:
        return
    key = SessionKey(call.app_id, call.caller.session_id)
    async with call.services.database.connection() as conn:
        if not await not_ended(conn, [key]):
            raise InvalidSession


async def _has_whole_input(call: Call, location: StreamLocation, *, within_s: float) -> bool:
    """Return whether the stream has its whole input, so that it can answer a repeated request.

    False means that it may end without an answer, or has just done so. For a stream of this process, this waits up
    to `within_s`. If the process of the stream does not respond, the result is True.
    """
    services, owner = call.services, Owner(call.app_id, call.caller.user)
    if (actor := services.supervisor.find(location.stream_id, owner)) is not None:
        return await has_whole_input(actor, within_s=within_s)
    if location.process == services.heartbeat.process:
        return False
    return await services.relay.has_whole_input(owner, location)


async def _open_once(call: Call, spec: StreamSpec) -> Actor | StreamLocation:
    services, limits = call.services, call.app_limits
    owner = Owner(call.app_id, call.caller.user)
    slot = Slot(owner.app_id, owner.user_id, new_id(), spec.conversation_id, spec.idempotency_key)
    max_stream_s = max_stream_s_of(limits)
    readable_s = limits.readable_s if spec.readable else 0
    context = call.request[REQUEST_CONTEXT]
    admission = services.admissions.acquire(slot, limit=limits.streams_per_user, lifetime_s=max_stream_s)
    try:
        # The command has been sent. The rest is created while Valkey executes it.
        log = EventLog(keep_bytes=limits.log_bytes, lag_bytes=limits.lag_bytes)
        ctx = StreamContext(
            slot.stream_id,
            owner,
            request_id=context.request_id,
            resources=services.resources,
            receipt=Receipt(context.arrived, waited_s=context.waited_s),
            log=log,
            max_stream_s=max_stream_s,
            answer_bytes=limits.answer_bytes,
            session=SessionKey(call.app_id, session_id) if (session_id := call.caller.session_id) else None,
            on_end=services.traces.of_request(call.request.headers) if services.traces else None,
        )
        held = _HeldSlot(services, slot, ctx, keep_bytes=limits.log_bytes, readable_s=readable_s)
        actor = Actor(
            ctx,
            spec.play,
            kind=spec.kind,
            conversation_id=spec.conversation_id,
            replicator=held.replicator,
            release=held.release,
            stream_s=limits.stream_s,
            resume_grace_s=limits.resume_grace_s,
            readable_s=readable_s,
        )
        if location := await _admitted(
            admission, services, slot, max_stream_s=max_stream_s, seen_running=spec.seen_running
        ):
            return location
        services.supervisor.check_owner(
            owner,
            per_user=limits.streams_per_user,
            per_app=limits.streams_per_app,
            elsewhere=services.heartbeat.elsewhere[owner.app_id],
        )
        services.supervisor.check_open(limit=limits.streams_per_process)
        if spec.readable:
            check_readers(call, owner)
    except BaseException:
        admission.close()
        await services.admissions.release(slot, readable_s=0)
        raise
    actor.outcome.add_done_callback(partial(_check_outcome, call.endpoint))
    services.supervisor.start(actor)
    return actor


def _check_outcome(row: Endpoint, outcome: "asyncio.Future[dict[str, Any] | ServiceError]") -> None:
    """Report an `error` event whose error the row does not list."""
    if isinstance(error := outcome.result(), ServiceError):
        check_event(row, error)


def check_readers(call: Call, owner: Owner) -> None:
    """Raise if there are too many readers. Limits are at least those of streams, so each stream can be read."""
    limits = call.app_limits
    call.services.supervisor.check_readers(
        owner,
        per_user=max(limits.readers_per_user, limits.streams_per_user),
        per_process=max(limits.readers_per_process, limits.streams_per_process),
    )


class _HeldSlot:
    """The admission slot of a stream. It is released when the stream ends."""

    __slots__ = ("_ctx", "_keep_bytes", "_readable_s", "_readable_until", "_services", "_slot")

    def __init__(
        self, services: Services, slot: Slot, ctx: StreamContext, *, keep_bytes: int, readable_s: float
    ) -> None:
        self._services = services
        self._slot = slot
        self._ctx = ctx
        self._keep_bytes = keep_bytes
        self._readable_s = readable_s
        self._readable_until: float | None = None
        """Time on the monotonic clock; None while the stream runs."""

    async def release(self) -> None:
        """Release the slot. The stream remains readable for a while, unless it was aborted."""
        readable_s = 0 if self._ctx.stop is Stop.ABORTED else self._readable_s
        self._readable_until = time.monotonic() + readable_s
        await self._services.admissions.release(self._slot, readable_s=readable_s)

    def replicator(self) -> LogReplicator:
        """Return the object that copies the log to Valkey when other processes may need it."""
        detached = DetachedLog(
            self._services.valkey,
            app_id=self._slot.app_id,
            user_id=self._slot.user_id,
            stream_id=self._slot.stream_id,
            keep_bytes=self._keep_bytes,
            keep_s=self._keep_s,
        )
        return LogReplicator(self._ctx.log, detached)

    def _keep_s(self) -> float:
        """Return for how many seconds from now the copied log is kept."""
        if self._readable_until is None:
            return self._ctx.max_stream_s + self._readable_s
        return self._readable_until - time.monotonic()


def max_stream_s_of(limits: Limits) -> float:
    """Return the longest time in seconds that a stream can hold its turn under these limits."""
    return limits.stream_s + _MARGIN_S


async def _admitted(
    admission: Coroutine[Any, Any, StreamLocation | None],
    services: Services,
    slot: Slot,
    *,
    max_stream_s: float,
    seen_running: bool,
) -> StreamLocation | None:
    """Await the admission. Return the location of the existing stream for a repeated request, else None.

    While Valkey is away, or after it has lost the key of a running turn, the database row of that turn prevents a
    second turn.
    """
    try:
        location = await admission
    except StoreError:
        location, seen_running = None, True
    if location is None and seen_running and slot.conversation_id is not None:
        await services.turns.check_free(slot.app_id, slot.conversation_id, max_stream_s=max_stream_s)
    return location


def idempotency_key_of(call: Call, parameters: Model) -> IdempotencyKey | None:
    """Return the request's `Idempotency-Key` with a fingerprint of its parameters, or None without the header."""
    key = key_in(call.request)
    if key is None:
        return None
    path = call.endpoint.original.path
    return IdempotencyKey(
        sha256_hex(f"{path} {key}".encode()), sha256_hex(dumps(parameters.model_dump(mode="json")))
    )
