"""Opening a stream: admitted within its limits, or found again by what it was asked for under (§4.17, 4.19)."""

import asyncio
import string
import time
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any

from actors.actor import Actor, Play
from actors.context import Owner, Stop, StreamContext
from actors.receipt import Receipt
from actors.relay import has_whole_input
from actors.spiller import Spiller
from app.http.endpoint import REQUEST_CONTEXT, Call
from app.services import Services
from storage.admission import IdempotencyKey, Slot, StreamLocation
from storage.detached_logs import DetachedLog
from storage.kinds.limits import Limits
from streams.log import EventLog
from streams.wire.codec import dumps
from streams.wire.errors import InvalidParameter, StoreError
from streams.wire.ids import new_id, sha256_hex
from streams.wire.model import Model

_MARGIN_S = 60
_REPEAT_WAITS_S = 5
_ASK_AGAIN_S = 0.1
_KEY_CHARACTERS = frozenset(string.ascii_letters + string.digits + string.punctuation)


@dataclass(frozen=True, slots=True)
class StreamSpec:
    """The stream that a request asks for.

    `asked`: under which `Idempotency-Key`, if any. `readable`: clients read its events, and may resume it.
    `seen_running`: the conversation had a running turn just now; if Valkey admits another one all the same, the
    row of that turn decides.
    """

    kind: str
    play: Play
    conversation_id: str | None = None
    asked: IdempotencyKey | None = None
    readable: bool = True
    seen_running: bool = False


async def open_actor(call: Call, spec: StreamSpec) -> Actor | StreamLocation:
    """Admit a stream and run it; if the same was asked for before, return the stream that answers it.

    `InvalidOperation`, `RateLimited` or `Unavailable` if a limit does not admit it.

    A stream whose client is lost before its input is whole cannot answer a repeat of its request. So a repeat
    waits, for at most 5 s, until that input is whole, or until the stream has ended and released the key.
    """
    until, before = time.monotonic() + _REPEAT_WAITS_S, ""
    while True:
        opened = await _open_once(call, spec)
        if not isinstance(opened, StreamLocation):
            return opened
        left_s = until - time.monotonic()
        if left_s <= 0 or await _has_whole_input(call, opened, within_s=left_s):
            return opened
        if opened.stream_id == before:
            await asyncio.sleep(_ASK_AGAIN_S)
        before = opened.stream_id


async def _has_whole_input(call: Call, found: StreamLocation, *, within_s: float) -> bool:
    """Whether the stream can answer a repeat. False: it may end without an answer, or has just ended so.

    Waits for a stream of this process. True also where the stream's process does not answer.
    """
    services, owner = call.services, Owner(call.app_id, call.caller.user)
    if (actor := services.supervisor.find(found.stream_id, owner)) is not None:
        return await has_whole_input(actor, within_s=within_s)
    if found.process == services.heartbeat.process:
        return False
    return await services.relay.has_whole_input(owner, found)


async def _open_once(call: Call, spec: StreamSpec) -> Actor | StreamLocation:
    services, limits = call.services, call.app_limits
    owner = Owner(call.app_id, call.caller.user)
    slot = Slot(owner.app_id, owner.user_id, new_id(), spec.conversation_id, spec.asked)
    longest_s = longest_stream_s(limits)
    readable_s = limits.readable_s if spec.readable else 0
    context = call.request[REQUEST_CONTEXT]
    taking = services.admissions.take(slot, limit=limits.streams_per_user, lifetime_s=longest_s)
    try:
        # while that is under way the rest is made
        log = EventLog(keep_bytes=limits.log_bytes, lag_bytes=limits.lag_bytes)
        ctx = StreamContext(
            slot.stream_id,
            owner,
            request_id=context.request_id,
            resources=services.resources,
            receipt=Receipt(context.arrived, waited_s=context.waited_s),
            log=log,
            longest_s=longest_s,
            answer_bytes=limits.answer_bytes,
            on_end=services.traces.of_request(call.request.headers) if services.traces else None,
        )
        held = _Held(services, slot, ctx, keep_bytes=limits.log_bytes, readable_s=readable_s)
        actor = Actor(
            ctx,
            spec.play,
            kind=spec.kind,
            conversation_id=spec.conversation_id,
            spiller=held.spiller,
            release=held.give_back,
            stream_s=limits.stream_s,
            resume_grace_s=limits.resume_grace_s,
            readable_s=readable_s,
        )
        if found := await _taken(taking, services, slot, longest_s=longest_s, seen_running=spec.seen_running):
            return found
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
        taking.close()
        await services.admissions.give_back(slot, readable_s=0)
        raise
    services.supervisor.start(actor)
    return actor


def check_readers(call: Call, owner: Owner) -> None:
    """Refuse another event stream where there are too many. Every stream that may run may also be read."""
    limits = call.app_limits
    call.services.supervisor.check_readers(
        owner,
        per_user=max(limits.readers_per_user, limits.streams_per_user),
        per_process=max(limits.readers_per_process, limits.streams_per_process),
    )


class _Held:
    """A stream's slot, and where its log goes when its last reader does."""

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
        """On the monotonic clock; unset while the stream runs."""

    async def give_back(self) -> None:
        readable_s = 0 if self._ctx.stop is Stop.ABORTED else self._readable_s
        self._readable_until = time.monotonic() + readable_s
        await self._services.admissions.give_back(self._slot, readable_s=readable_s)

    def spiller(self) -> Spiller:
        spilled = DetachedLog(
            self._services.valkey,
            app_id=self._slot.app_id,
            user_id=self._slot.user_id,
            stream_id=self._slot.stream_id,
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
    taking: Coroutine[Any, Any, StreamLocation | None],
    services: Services,
    slot: Slot,
    *,
    longest_s: float,
    seen_running: bool,
) -> StreamLocation | None:
    """Have the place that is asked for.

    The row of a running turn guards it while Valkey is away, and after Valkey has lost the key of that turn.
    """
    try:
        found = await taking
    except StoreError:
        found, seen_running = None, True
    if found is None and seen_running and slot.conversation_id is not None:
        await services.turns.check_free(slot.app_id, slot.conversation_id, longest_s=longest_s)
    return found


def asked_under_key(call: Call, parameters: Model) -> IdempotencyKey | None:
    """The request's `Idempotency-Key` with a fingerprint of its parameters; none where it has no key."""
    key = call.request.headers.get("Idempotency-Key")
    if key is None:
        return None
    if not 1 <= len(key) <= 255 or not _KEY_CHARACTERS.issuperset(key):
        raise InvalidParameter("Idempotency-Key must be 1 to 255 visible ASCII characters")
    path = call.endpoint.path
    return IdempotencyKey(
        sha256_hex(f"{path} {key}".encode()), sha256_hex(dumps(parameters.model_dump(mode="json")))
    )
