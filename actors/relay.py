"""Access to streams of other processes, and other processes' access to the streams of this one."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

import structlog

from actors.actor import Actor
from actors.context import Owner, Stop
from actors.mailbox import Attach, Cancel, Detach
from actors.supervisor import Supervisor
from storage.admission import StreamLocation
from storage.detached_logs import Batch, DetachedLog, Piece
from storage.heartbeats import Heartbeat
from storage.process_rpc import Message, NotSubscribed, ProcessRpc, listening
from storage.redis import Valkey
from streams.events import Failed, encode_unnumbered, error_content
from streams.log import PIECE_BYTES, Gone, Push, Ready
from streams.tasks import stopping
from streams.wire.codec import now_ms
from streams.wire.errors import RateLimited, ServiceError, StoreError, Unavailable
from streams.wire.ids import new_id

log = structlog.get_logger()

MAX_READERS = 16
_ANSWERS_WITHIN_S = 2
_CANCELS_WITHIN_S = 15
_RENEW_EVERY_S = 5
_ASK_AGAIN_S = 1
_LEASE_S = 20
_WAIT_S = 2.0
_SPILLS_WITHIN_S = 1.5


@dataclass(frozen=True, slots=True)
class LogRange:
    """The event ids of a stream that can be read, from `first` to `last`.

    `closed`: `last` is the stream's last event. `lost`: the process that ran the stream is gone. `uncertain`: that
    process did not say how far the stream is, so there may be later events.
    """

    first: int
    last: int
    closed: bool = False
    lost: bool = False
    uncertain: bool = False


class Relay:
    """Connects readers in this process with streams in other processes, and the reverse."""

    def __init__(self, valkey: Valkey, rpc: ProcessRpc, supervisor: Supervisor, heartbeat: Heartbeat) -> None:
        self._valkey = valkey
        self._rpc = rpc
        self._heartbeat = heartbeat
        self._supervisor = supervisor
        self._readers: Counter[str] = Counter()
        self._leases: dict[str, asyncio.TimerHandle] = {}
        """By reader id: when a reader in another process counts as gone."""

    @asynccontextmanager
    async def attached(
        self, owner: Owner, location: StreamLocation, *, keep_bytes: int, keep_s: float
    ) -> AsyncIterator["RemoteLog"]:
        """Open a stream that runs, or ran, in another process. Raises `RateLimited` if it has too many readers."""
        if self._readers[location.stream_id] >= MAX_READERS:
            raise too_many_readers()
        spilled = DetachedLog(
            self._valkey,
            app_id=owner.app_id,
            user_id=owner.user_id,
            stream_id=location.stream_id,
            keep_bytes=keep_bytes,
            keep_s=lambda: keep_s,
        )
        remote = RemoteLog(self, owner, location, spilled)
        self._readers[location.stream_id] += 1
        try:
            await remote.attach()
            yield remote
        finally:
            self._readers[location.stream_id] -= 1
            if not self._readers[location.stream_id]:
                del self._readers[location.stream_id]
            await remote.leave()

    async def cancel(self, owner: Owner, location: StreamLocation, heard_ms: int | None) -> bool:
        """Ask the stream's process to cancel it and wait until it has.

        Return `False` if that process is gone, has no such stream or does not respond.
        """
        answer = await self.ask(
            location, {"op": "cancel", "heard_ms": heard_ms}, owner=owner, within_s=_CANCELS_WITHIN_S
        )
        return answer is not None and answer["known"]

    async def has_whole_input(self, owner: Owner, location: StreamLocation) -> bool:
        """Return whether the input of a stream in another process is complete.

        Return `True` also if that process is gone or does not respond.
        """
        request = {"op": "input", **_identify(location, owner)}
        try:
            answer = await self._rpc.ask(location.process, request, within_s=_ANSWERS_WITHIN_S)
        except NotSubscribed:
            return True
        return answer is None or bool(answer.get("whole"))

    async def ask(
        self, location: StreamLocation, message: Message, *, owner: Owner, within_s: float = _ANSWERS_WITHIN_S
    ) -> Message | None:
        """Send a request to the stream's process.

        Return the response, `{"known": False}` if the process or the stream is gone, or `None` if a process that is
        alive does not respond.
        """
        gone = {"known": False}
        if location.process == self._rpc.process:
            return gone  # A stream in this process is looked up in the supervisor first.
        try:
            request = {**message, **_identify(location, owner)}
            answer = await self._rpc.ask(location.process, request, within_s=within_s)
            if answer is None and await self._heartbeat.dead([location.process]):
                return gone
        except NotSubscribed:
            return gone
        return answer

    async def tell(self, location: StreamLocation, message: Message, *, owner: Owner) -> None:
        """Send a message to the stream's process without waiting for a response."""
        with suppress(StoreError):
            await self._rpc.tell(location.process, {**message, **_identify(location, owner)})

    async def answer(self, request: Message) -> Message | None:
        """Handle a request of another process for a stream of this one. Return the response, if there is one."""
        owner = Owner(request["app_id"], request["user_id"])
        actor = self._supervisor.find(request["stream_id"], owner)
        if actor is None:
            return {"known": False}
        match request["op"]:
            case "read":
                return await self._let_read(actor, request["reader_id"])
            case "still":
                self._renew(actor, request["reader_id"])
                return {"known": True}
            case "leave":
                self._end_lease(actor, request["reader_id"])
            case "input":
                return {"known": True, "whole": _can_answer_repeat(actor)}
            case "cancel":
                await cancel(actor, request["heard_ms"])
                return {"known": True}
        return None

    async def _let_read(self, actor: Actor, reader_id: str) -> Message:
        if not actor.log.closed:
            if actor.readers >= MAX_READERS:
                return {"known": True, "full": True}
            self._renew(actor, reader_id)
        with suppress(TimeoutError):
            async with asyncio.timeout(_SPILLS_WITHIN_S):
                await actor.spill()
        return {"known": True, "closed": actor.log.closed, "last": actor.log.last_id}

    def _renew(self, actor: Actor, reader_id: str) -> None:
        """Attach a reader of another process, or renew its lease."""
        if (lease := self._leases.pop(reader_id, None)) is not None:
            lease.cancel()
        elif not actor.log.closed:
            actor.tell(Attach())
        loop = asyncio.get_running_loop()
        self._leases[reader_id] = loop.call_later(_LEASE_S, self._end_lease, actor, reader_id)

    def _end_lease(self, actor: Actor, reader_id: str) -> None:
        if (lease := self._leases.pop(reader_id, None)) is not None:
            lease.cancel()
            actor.tell(Detach())

    def close(self) -> None:
        for lease in self._leases.values():
            lease.cancel()
        self._leases.clear()


@asynccontextmanager
async def open_relay(valkey: Valkey, heartbeat: Heartbeat, supervisor: Supervisor) -> AsyncIterator[Relay]:
    """Answer requests of other processes within the block."""
    rpc = ProcessRpc(valkey, heartbeat.process)
    relay = Relay(valkey, rpc, supervisor, heartbeat)
    async with listening(rpc, relay.answer):
        try:
            yield relay
        finally:
            relay.close()


class RemoteLog:
    """The events of a stream in another process, read from the copy of its log in Valkey."""

    def __init__(self, relay: Relay, owner: Owner, location: StreamLocation, spilled: DetachedLog) -> None:
        self._relay = relay
        self._owner = owner
        self._location = location
        self._spilled = spilled
        self._reader_id = new_id()
        self.span = LogRange(1, 0)
        self._attached = False
        """Whether the stream's process knows this reader, as far as it has said."""
        self._lost = False
        """Whether the stream's process is gone, or no longer has the stream."""

    async def attach(self) -> None:
        """Ask the stream's process to copy its log to Valkey, and set `span` to the events available there."""
        answer = await self._ask("read")
        if answer is not None and answer.get("full"):
            raise too_many_readers()
        first, last, closed = await self._spilled.span() or (1, 0, False)
        if self._attached and answer is not None:
            last, closed = max(last, answer["last"]), answer["closed"]
        self.span = LogRange(first, last, closed, lost=self._lost, uncertain=not self._attached)

    async def _ask(self, op: str) -> Message | None:
        """Send a request about this reader, and note whether the stream's process knows the reader or is gone."""
        answer = await self._relay.ask(self._location, {"op": op, "reader_id": self._reader_id}, owner=self._owner)
        self._attached = answer is not None and answer["known"]
        self._lost = answer is not None and not answer["known"]
        return answer

    async def leave(self) -> None:
        await self._relay.tell(self._location, {"op": "leave", "reader_id": self._reader_id}, owner=self._owner)

    async def follow(self, after: int, *, idle_s: float, push: Push | None = None) -> AsyncGenerator[Ready]:
        """Iterate as `EventLog.follow` does. `push` is ignored, because the events arrive in batches.

        If the stream's process is gone, the iteration ends with an `error` event without an id. A frame that is
        larger than a piece is returned in several pieces, and only the last of them increases `last_id`.
        """
        cursor, returned_at, renewed_at = _Cursor(after), time.monotonic(), time.monotonic()
        while not stopping():
            ready = cursor.advance(
                await self._spilled.read(
                    cursor.position,
                    offset_bytes=cursor.offset_bytes,
                    most_bytes=PIECE_BYTES,
                    wait_s=0 if self._lost else _WAIT_S,
                )
            )
            now = time.monotonic()
            if ready is not None:
                returned_at, final = now, ready.final
                yield ready
                del ready
                if final:
                    return
            elif self._lost:
                yield Ready(cursor.position, _lost_frame(), final=True)
                return
            if now - returned_at >= idle_s:
                returned_at = now
                yield Ready(cursor.position, b"", final=False)
            renew_after_s = _RENEW_EVERY_S if self._attached else _ASK_AGAIN_S
            if now - renewed_at >= renew_after_s and not self._lost:
                renewed_at = now
                await self._ask("still" if self._attached else "read")


class _Cursor:
    """A position in a log in Valkey: after id `position`, plus `offset_bytes` of the entry that follows."""

    def __init__(self, position: int) -> None:
        self.position = position
        self.offset_bytes = 0
        self._entry = 0
        """The last id of the entry that was read partially."""

    def advance(self, pieces: list[Piece]) -> Ready | None:
        """Return the unread frames in `pieces` and move behind them.

        Raises `Gone` if frames between the position and `pieces` are no longer kept.
        """
        if not pieces:
            return None
        frames: list[bytes] = []
        final = False
        for batch, size_bytes in pieces:
            if self.offset_bytes and batch.last != self._entry:
                raise Gone(f"events after {self.position} are no longer kept")
            frames.append(batch.frames if self.offset_bytes else _frames_after(batch, self.position))
            self.offset_bytes += len(batch.frames)
            if self.offset_bytes < size_bytes:
                self._entry = batch.last
            else:
                self.position, self.offset_bytes, final = batch.last, 0, batch.closing
        return Ready(self.position, frames[0] if len(frames) == 1 else b"".join(frames), final)


async def cancel(actor: Actor, heard_ms: int | None) -> None:
    """Cancel a stream of this process and wait for its end.

    If the stream has already ended, truncate its stored answer to what was heard. Raises `Unavailable` if the
    stream does not end in time.
    """
    if not actor.outcome.done():
        actor.tell(Cancel(heard_ms=heard_ms))
        done, _ = await asyncio.wait([actor.outcome], timeout=_CANCELS_WITHIN_S)
        if not done:
            raise Unavailable("the stream has not ended yet", retry_after_s=1)
    if heard_ms is not None and actor.ctx.heard_ms is None and actor.ctx.revise is not None:
        await actor.ctx.revise(heard_ms)


async def has_whole_input(actor: Actor, *, within_s: float) -> bool:
    """Wait until the stream's input is complete or the stream has ended.

    Return `False` if the client disconnected before its input was complete, or after `within_s` seconds.
    """
    try:
        async with asyncio.timeout(within_s):
            with suppress(ServiceError):
                await actor.ctx.input.completed()
                return True
            await asyncio.wait([actor.outcome])
    except TimeoutError:
        return False
    return _can_answer_repeat(actor)


def _can_answer_repeat(actor: Actor) -> bool:
    """Whether a repeat of the stream's request may be given this stream, as it is at this moment.

    Not a stream that was aborted: it ends without an answer, and can be found until its task is done.
    """
    return actor.ctx.stop is not Stop.ABORTED and (actor.ctx.input.complete or actor.outcome.done())


def too_many_readers() -> ServiceError:
    return RateLimited(f"at most {MAX_READERS} readers of a stream", retry_after_s=1)


def _identify(location: StreamLocation, owner: Owner) -> Message:
    return {"app_id": owner.app_id, "user_id": owner.user_id, "stream_id": location.stream_id}


def _frames_after(batch: Batch, position: int) -> bytes:
    """Return the frames of `batch` with an id above `position`.

    Raises `Gone` if frames between `position` and `batch` are no longer kept.
    """
    if batch.first > position + 1:
        raise Gone(f"events after {position} are no longer kept")
    if batch.first == position + 1:
        return batch.frames
    frames = batch.frames.split(b"\n\n")
    return b"\n\n".join(frames[position + 1 - batch.first :])


def _lost_frame() -> bytes:
    error = Unavailable("the process that had the stream is gone", retry_after_s=1)
    return encode_unnumbered(Failed(error_content(error)), now_ms())
