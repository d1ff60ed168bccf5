"""Streams of other processes: following, cancelling, and letting others do so with ours."""

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
from storage.process_rpc import Message, ProcessRpc, listening
from storage.redis import Valkey
from streams.events import Failed, encode_unnumbered, error_content
from streams.log import PIECE_BYTES, Gone, Push, Ready
from streams.tasks import stopping
from streams.wire.codec import now_ms
from streams.wire.errors import RateLimited, ServiceError, StoreError, Unavailable
from streams.wire.ids import new_id

log = structlog.get_logger()

MOST_READERS = 16
_ANSWERS_WITHIN_S = 2
_CANCELS_WITHIN_S = 15
_STILL_EVERY_S = 5
_READER_VOID_S = 20
_WAIT_S = 2.0
_SPILLS_WITHIN_S = 1.5


@dataclass(frozen=True, slots=True)
class LogRange:
    """What can be read of a stream: ids, whether the last is its end, whether nobody goes on with it."""

    first: int
    last: int
    closed: bool = False
    lost: bool = False


class Relay:
    """This process's view of the streams of all."""

    def __init__(self, valkey: Valkey, rpc: ProcessRpc, supervisor: Supervisor) -> None:
        self._valkey = valkey
        self._rpc = rpc
        self._supervisor = supervisor
        self._readers: Counter[str] = Counter()
        self._leases: dict[str, asyncio.TimerHandle] = {}

    @asynccontextmanager
    async def attached(
        self, owner: Owner, found: StreamLocation, *, keep_bytes: int, keep_s: float
    ) -> AsyncIterator["RemoteLog"]:
        """A stream that another process has, or had; `RateLimited` where it has readers enough."""
        if self._readers[found.stream_id] >= MOST_READERS:
            raise too_many_readers()
        spilled = DetachedLog(
            self._valkey,
            app_id=owner.app_id,
            user_id=owner.user_id,
            stream_id=found.stream_id,
            keep_bytes=keep_bytes,
            keep_s=lambda: keep_s,
        )
        remote = RemoteLog(self, owner, found, spilled)
        self._readers[found.stream_id] += 1
        try:
            await remote.attach()
            yield remote
        finally:
            self._readers[found.stream_id] -= 1
            if not self._readers[found.stream_id]:
                del self._readers[found.stream_id]
            await remote.leave()

    async def cancel(self, owner: Owner, found: StreamLocation, heard_ms: int | None) -> bool:
        """Have its process cancel a stream, and wait until that is done; not where that process is gone."""
        answer = await self.ask(
            found, {"op": "cancel", "heard_ms": heard_ms}, owner=owner, within_s=_CANCELS_WITHIN_S
        )
        return answer is not None

    async def has_whole_input(self, owner: Owner, found: StreamLocation) -> bool:
        """Whether the input of another process's stream is whole. True also where that process does not answer."""
        question = {"op": "input", **_about(found, owner)}
        answer = await self._rpc.ask(found.process, question, within_s=_ANSWERS_WITHIN_S)
        return answer is None or bool(answer.get("whole"))

    async def ask(
        self, found: StreamLocation, message: Message, *, owner: Owner, within_s: float = _ANSWERS_WITHIN_S
    ) -> Message | None:
        if found.process == self._rpc.process:
            return None  # it is not here, or it would have been found
        answer = await self._rpc.ask(found.process, {**message, **_about(found, owner)}, within_s=within_s)
        return answer if answer and answer.get("known") else None

    async def tell(self, found: StreamLocation, message: Message, *, owner: Owner) -> None:
        with suppress(StoreError):
            await self._rpc.tell(found.process, {**message, **_about(found, owner)})

    async def answer(self, question: Message) -> Message | None:
        """What another process asks of a stream of ours."""
        owner = Owner(question["app_id"], question["user_id"])
        actor = self._supervisor.find(question["stream_id"], owner)
        if actor is None:
            return {"known": False}
        match question["op"]:
            case "read":
                return await self._let_read(actor, question["reader_id"])
            case "still":
                self._renew(actor, question["reader_id"])
                return {"known": True}
            case "leave":
                self._end_lease(actor, question["reader_id"])
            case "input":
                return {"known": True, "whole": _can_answer_repeat(actor)}
            case "cancel":
                await cancel(actor, question["heard_ms"])
                return {"known": True}
        return None

    async def _let_read(self, actor: Actor, reader_id: str) -> Message:
        if not actor.log.closed:
            if actor.readers >= MOST_READERS:
                return {"known": True, "full": True}
            self._renew(actor, reader_id)
        with suppress(TimeoutError):
            async with asyncio.timeout(_SPILLS_WITHIN_S):
                await actor.spilled()
        return {"known": True, "closed": actor.log.closed, "last": actor.log.last_id}

    def _renew(self, actor: Actor, reader_id: str) -> None:
        """A reader elsewhere is one of the stream's as long as its process says so."""
        if (lease := self._leases.pop(reader_id, None)) is not None:
            lease.cancel()
        elif not actor.log.closed:
            actor.tell(Attach())
        loop = asyncio.get_running_loop()
        self._leases[reader_id] = loop.call_later(_READER_VOID_S, self._end_lease, actor, reader_id)

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
    """Answer other processes while the block lasts."""
    rpc = ProcessRpc(valkey, heartbeat.process)
    relay = Relay(valkey, rpc, supervisor)
    async with listening(rpc, relay.answer):
        try:
            yield relay
        finally:
            relay.close()


class RemoteLog:
    """The events of another process's stream, read from where that process spills them."""

    def __init__(self, relay: Relay, owner: Owner, found: StreamLocation, spilled: DetachedLog) -> None:
        self._relay = relay
        self._owner = owner
        self._found = found
        self._spilled = spilled
        self._reader_id = new_id()
        self.span = LogRange(1, 0)

    async def attach(self) -> None:
        """Have the stream spilled, and see what there is of it."""
        question = {"op": "read", "reader_id": self._reader_id}
        answer = await self._relay.ask(self._found, question, owner=self._owner)
        if answer is not None and answer.get("full"):
            raise too_many_readers()
        first, last, closed = await self._spilled.span() or (1, 0, False)
        if answer is not None:
            last, closed = max(last, answer["last"]), answer["closed"]
        self.span = LogRange(first, last, closed, lost=answer is None)

    async def leave(self) -> None:
        await self._relay.tell(self._found, {"op": "leave", "reader_id": self._reader_id}, owner=self._owner)

    async def follow(self, after: int, *, idle_s: float, push: Push | None = None) -> AsyncGenerator[Ready]:
        """As `EventLog.follow`, but nothing is pushed: events come in batches anyway.

        A stream whose process is lost ends with an `error` without an id. A frame larger than a piece comes in
        several, the first of which leave `last_id` as it is.
        """
        place, spoke, asked, lost = _Place(after), time.monotonic(), time.monotonic(), self.span.lost
        while not stopping():
            ready = place.behind(
                await self._spilled.read(
                    place.position,
                    offset_bytes=place.offset_bytes,
                    most_bytes=PIECE_BYTES,
                    wait_s=0 if lost else _WAIT_S,
                )
            )
            now = time.monotonic()
            if ready is not None:
                spoke, whole = now, ready.whole
                yield ready
                del ready
                if whole:
                    return
            elif lost:
                yield Ready(place.position, _lost(), whole=True)
                return
            if now - spoke >= idle_s:
                spoke = now
                yield Ready(place.position, b"", whole=False)
            if now - asked >= _STILL_EVERY_S and not lost:
                asked = now
                still = {"op": "still", "reader_id": self._reader_id}
                lost = await self._relay.ask(self._found, still, owner=self._owner) is None


class _Place:
    """How far a spilled log was read: to id `position`, and `offset_bytes` into the entry that follows."""

    def __init__(self, position: int) -> None:
        self.position = position
        self.offset_bytes = 0
        self._entry = 0
        """The last id of the entry that was read in part."""

    def behind(self, pieces: list[Piece]) -> Ready | None:
        """What `pieces` hold that was not read; `Gone` where something before it is no longer kept."""
        if not pieces:
            return None
        frames: list[bytes] = []
        whole = False
        for batch, size_bytes in pieces:
            if self.offset_bytes and batch.last != self._entry:
                raise Gone(f"events after {self.position} are no longer kept")
            frames.append(batch.frames if self.offset_bytes else _behind(batch, self.position))
            self.offset_bytes += len(batch.frames)
            if self.offset_bytes < size_bytes:
                self._entry = batch.last
            else:
                self.position, self.offset_bytes, whole = batch.last, 0, batch.closing
        return Ready(self.position, frames[0] if len(frames) == 1 else b"".join(frames), whole)


async def cancel(actor: Actor, heard_ms: int | None) -> None:
    """Cancel a stream of this process, or cut what was kept of a finished one to what was heard."""
    if not actor.outcome.done():
        actor.tell(Cancel(heard_ms=heard_ms))
        done, _ = await asyncio.wait([actor.outcome], timeout=_CANCELS_WITHIN_S)
        if not done:
            raise Unavailable("the stream has not ended yet", retry_after_s=1)
    if heard_ms is not None and actor.ctx.heard_ms is None and actor.ctx.revise is not None:
        await actor.ctx.revise(heard_ms)


async def has_whole_input(actor: Actor, *, within_s: float) -> bool:
    """Wait until the stream's input is whole or the stream has ended; false where it ended by a lost client.

    False also once `within_s` are over.
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
    return RateLimited(f"at most {MOST_READERS} readers of a stream", retry_after_s=1)


def _about(found: StreamLocation, owner: Owner) -> Message:
    return {"app_id": owner.app_id, "user_id": owner.user_id, "stream_id": found.stream_id}


def _behind(batch: Batch, position: int) -> bytes:
    """The frames of `batch` with an id over `position`; `Gone` where some before them are no longer kept."""
    if batch.first > position + 1:
        raise Gone(f"events after {position} are no longer kept")
    if batch.first == position + 1:
        return batch.frames
    frames = batch.frames.split(b"\n\n")
    return b"\n\n".join(frames[position + 1 - batch.first :])


def _lost() -> bytes:
    error = Unavailable("the process that had the stream is gone", retry_after_s=1)
    return encode_unnumbered(Failed(error_content(error)), now_ms())
