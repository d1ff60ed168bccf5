"""Admission: start the actor of a new stream, or find the stream of an earlier request with the same key."""

import asyncio
import time
from collections.abc import Coroutine
from typing import Any, NamedTuple

from actors.runtime.actor import Actor, Play
from actors.runtime.context import Owner, Resources, StreamContext
from actors.runtime.held_slot import HeldSlot
from actors.runtime.receipt import Receipt
from actors.runtime.relay import Relay
from actors.runtime.supervisor import Supervisor
from storage.accounts.ended_sessions import SessionKey
from storage.accounts.sessions import not_ended
from storage.configs.kinds.limits import Limits
from storage.conversations.admission import Admissions, IdempotencyKey, Slot, StreamLocation
from streams.log import EventLog
from streams.wire.errors import InvalidSession, StoreUnavailable
from streams.wire.ids import new_id

_REPEAT_WAIT_S = 5
_RETRY_S = 0.1
_RECHECK_S = 5
"""Less than the time for which processes remember announcements of ended sessions."""


class StreamRequest(NamedTuple):
    """A request for a stream, independent of HTTP.

    `arrived`: the `time.monotonic()` value at which the head of the request arrived.
    `waited_s`: the part of the time since then that was spent waiting for the client.
    `readable`: clients read the events and may resume the stream.
    `seen_running`: the conversation had a running turn just now. If Valkey admits this stream nevertheless, the
    database row of that turn decides.
    """

    kind: str
    play: Play
    owner: Owner
    limits: Limits
    request_id: str
    arrived: float
    waited_s: float
    session: SessionKey | None = None
    """The session of the request; `None` if an app server sent it."""
    traceparent: str = ""
    conversation_id: str | None = None
    idempotency_key: IdempotencyKey | None = None
    readable: bool = True
    seen_running: bool = False
    durable: bool = False
    """Whether the log is copied to Valkey from the beginning, so that it survives this process."""


class Said(NamedTuple):
    """What a stream has said in a process that has died."""

    receipt: Receipt
    log: EventLog


class AdmissionControl:
    """Decides which streams run. A stream that it admits has a slot, a context and an actor."""

    def __init__(self, resources: Resources, supervisor: Supervisor, admissions: Admissions, relay: Relay) -> None:
        self._resources = resources
        self._supervisor = supervisor
        self._admissions = admissions
        self._relay = relay

    async def admit(self, request: StreamRequest) -> Actor | StreamLocation:
        """Admit a stream and start it. For a repeated request, return the location of the existing stream.

        Raises `InvalidSession`, `TurnRunning`, `KeyReused`, `RateLimited` or `Unavailable` when the stream is not
        admitted.

        A stream whose client disconnects before its input is complete cannot answer a repeat of its request.
        Therefore a repeat waits, for at most 5 s, until that input is complete or the stream has ended and released
        the key.
        """
        await self._check_session(request)
        deadline, previous_id = time.monotonic() + _REPEAT_WAIT_S, ""
        while True:
            admitted = await self._admit_once(request)
            if isinstance(admitted, Actor):
                return admitted
            left_s = deadline - time.monotonic()
            if left_s <= 0 or await self._relay.has_whole_input(request.owner, admitted, within_s=left_s):
                return admitted
            if admitted.stream_id == previous_id:
                await asyncio.sleep(_RETRY_S)
            previous_id = admitted.stream_id

    async def _check_session(self, request: StreamRequest) -> None:
        """Raise `InvalidSession` if the session ended while a slow request arrived.

        Such a request may take longer than processes remember the announcement that its session ended.
        """
        if request.session is None or time.monotonic() - request.arrived < _RECHECK_S:
            return
        async with self._resources.database.connection() as conn:
            if not await not_ended(conn, [request.session]):
                raise InvalidSession

    async def _admit_once(self, request: StreamRequest) -> Actor | StreamLocation:
        limits, owner = request.limits, request.owner
        slot = Slot(
            owner.app_id,
            owner.user_id,
            new_id(),
            request.conversation_id,
            request.idempotency_key,
            durable=request.durable,
        )
        acquired = self._admissions.acquire(slot, limit=limits.streams_per_user, lifetime_s=limits.max_stream_s)
        try:
            # The command has been sent. The actor is created while Valkey executes it.
            actor = self._actor(request, slot)
            if location := await self._await_slot(acquired, request):
                return location
            elsewhere = self._resources.heartbeat.elsewhere[owner.app_id]
            self._supervisor.check_streams(owner, limits, elsewhere=elsewhere)
            if request.readable:
                self._supervisor.check_readers(owner, limits)
        except BaseException:
            acquired.close()
            await self._admissions.release(slot, readable_s=0)
            raise
        self._supervisor.start(actor)
        return actor

    def take_over(self, request: StreamRequest, slot: Slot, said: Said, *, lifetime_s: float) -> Actor:
        """Start the rest of a stream that this process has claimed. Valkey keeps its entry for `lifetime_s`."""
        actor = self._actor(request, slot, said)
        actor.ctx.input.end()
        self._admissions.take_over(slot, lifetime_s=lifetime_s)
        self._supervisor.start(actor)
        return actor

    def _actor(self, request: StreamRequest, slot: Slot, said: Said | None = None) -> Actor:
        limits, resources = request.limits, self._resources
        held = HeldSlot(
            slot,
            self._admissions,
            resources.valkey,
            process=resources.heartbeat.process,
            max_stream_s=limits.max_stream_s,
            readable_s=limits.readable_s if request.readable else 0,
        )
        if said is None:
            receipt = Receipt(request.arrived, waited_s=request.waited_s)
            log = EventLog(keep_bytes=limits.log_bytes, lag_bytes=limits.lag_bytes)
        else:
            receipt, log = said
        ctx = StreamContext(
            slot.stream_id,
            request.owner,
            request_id=request.request_id,
            resources=resources,
            receipt=receipt,
            log=log,
            max_stream_s=limits.max_stream_s,
            answer_bytes=limits.answer_bytes,
            session=request.session,
            traceparent=request.traceparent,
            idempotency_key=(key.key, key.fingerprint) if (key := slot.idempotency_key) else None,
            save=held.save if request.durable and held.readable_s > 0 else None,
        )
        return Actor(
            ctx,
            request.play,
            held,
            kind=request.kind,
            conversation_id=request.conversation_id,
            stream_s=limits.stream_s if said is None else request.arrived + limits.stream_s - time.monotonic(),
            resume_grace_s=limits.resume_grace_s,
        )

    async def _await_slot(
        self, acquired: Coroutine[Any, Any, StreamLocation | None], request: StreamRequest
    ) -> StreamLocation | None:
        """Await the slot. Return the location of the existing stream for a repeated request, else None.

        While Valkey is unavailable, or after it has lost the key of a running turn, the database row of that turn
        prevents a second turn. If Valkey refuses the command, the stream is refused too: its idempotency key would
        not be checked.
        """
        seen_running = request.seen_running
        try:
            location = await acquired
        except StoreUnavailable:
            location, seen_running = None, True
        if location is None and seen_running and request.conversation_id is not None:
            await self._resources.turns.check_free(
                request.owner.app_id, request.conversation_id, max_stream_s=request.limits.max_stream_s
            )
        return location
