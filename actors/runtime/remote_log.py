"""The events of a stream in another process, for one reader in this one."""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, aclosing, nullcontext
from dataclasses import dataclass
from typing import Literal, Protocol

from storage.conversations.detached_logs import Batch, DetachedLog, Piece
from storage.processes.process_rpc import Message
from streams.events import Failed, encode_unnumbered, error_content
from streams.log import PIECE_BYTES, Followable, Gone, Push, Ready
from streams.refusals import REFUSED
from streams.tasks import stopping
from streams.wire.codec import now_ms
from streams.wire.errors import RateLimited, ServiceError, StoreError, Unavailable
from streams.wire.ids import new_id

MAX_READERS = 16
_RENEW_EVERY_S = 5
_RETRY_REQUEST_S = 1
_READ_WAIT_S = 2.0
_READ_TIMEOUT_S = 5.0
_RETRY_READ_S = 0.5
_UNDECIDED_S = 45
"""How long a reader waits for the successor of a process. It counts as dead 30 s after its last heartbeat."""
_OUTAGE_S = 60
"""How long a reader waits for Valkey. Its client may then reach the stream's process, which needs no Valkey."""


@dataclass(frozen=True, slots=True)
class LogRange:
    """The event ids of a stream that can be read, from `first` to `last`.

    `closed`: `last` is the stream's last event. `lost`: the process that ran the stream is dead or no longer has
    it. `uncertain`: that process did not respond, so there may be later events.
    """

    first: int
    last: int
    closed: bool = False
    lost: bool = False
    uncertain: bool = False


class Successor(Protocol):
    """Opens the rest of a stream that its process no longer has.

    `None` means that nobody continues it, and `undecided` that another process will if that one is `dead`.
    """

    def __call__(self, *, dead: bool) -> AbstractAsyncContextManager[Followable | Literal["undecided"] | None]: ...


class RemoteLog:
    """Reads the events from the copy of the log in Valkey. `request` sends a request to the stream's process.

    If that process dies, the events of the `successor` follow.
    """

    def __init__(
        self,
        detached: DetachedLog,
        *,
        request: Callable[[Message], Awaitable[Message | None]],
        successor: Successor | None = None,
    ) -> None:
        self._successor = successor
        self._detached = detached
        self._send_request = request
        self.reader_id = new_id()
        self.span = LogRange(1, 0)
        self._attached = False
        """Whether the stream's process knew this reader in its last response."""
        self._lost = False
        """Whether the stream's process is dead, or no longer has the stream."""
        self.dead = False
        """Whether the stream's process is dead."""
        self._undecided_since: float | None = None
        """Since when a successor might continue the stream, if its process turns out to be dead."""
        self._draining = False
        self._reading: asyncio.Timeout | None = None
        """The timeout of the read that is waiting for events."""
        self._available_at = time.monotonic()
        """When Valkey last responded to a read."""

    async def attach(self) -> None:
        """Ask the stream's process to copy its log to Valkey, and set `span` to the events available there."""
        answer = await self._request_events()
        if answer is not None and answer.get("full"):
            raise too_many_readers()
        first, last, closed = await self._detached.span() or (1, 0, False)
        if self._attached and answer is not None:
            last, closed = max(last, answer["last"]), answer["closed"]
        self.span = LogRange(first, last, closed, lost=self._lost, uncertain=not self._attached)

    def drain(self) -> None:
        """End the iteration of `follow` with an `error` event, because this process is draining."""
        self._draining = True
        if self._reading is not None:
            self._reading.reschedule(asyncio.get_running_loop().time())

    async def follow(self, after: int, *, idle_s: float, push: Push | None = None) -> AsyncGenerator[Ready]:
        """Iterate as `EventLog.follow` does. `push` is ignored, because the events arrive in batches.

        The iteration ends with an `error` event without an id if the stream's process is dead, if this process is
        draining, if Valkey is unavailable for too long, or if the next events are no longer kept. A frame that is
        larger than a piece is returned in several pieces, and only the last of them increases `last_id`.
        """
        cursor = _Cursor(after)
        returned_at = renewed_at = self._available_at = time.monotonic()
        while not stopping():
            ready = await self._read(cursor)
            now = time.monotonic()
            if ready is not None:
                returned_at, final = now, ready.final
                yield ready
                del ready
                if final:
                    return
            elif (error := self._error(now)) is not None:
                if cursor.offset_bytes:  # The client would take the event for the rest of the incomplete frame.
                    raise error
                may_continue = self._lost and not self._draining and after <= self.span.last
                async with aclosing(self._end(cursor.position, error, idle_s, may_continue=may_continue)) as last:
                    async for ready in last:
                        yield ready
                if self._undecided_since is None:
                    return
                await asyncio.sleep(_RETRY_REQUEST_S)
            if now - returned_at >= idle_s:
                returned_at = now
                yield Ready(cursor.position, b"", final=False)
            renew_after_s = _RENEW_EVERY_S if self._attached else _RETRY_REQUEST_S
            waits = not self._lost or self._undecided_since is not None
            if now - renewed_at >= renew_after_s and waits and not self._draining:
                renewed_at = now
                await self._renew()

    async def _end(
        self, position: int, error: ServiceError, idle_s: float, *, may_continue: bool
    ) -> AsyncGenerator[Ready]:
        """Iterate over the events of the successor or, if there is none, over an `error` event.

        If that is undecided, there are no events, and `_undecided_since` is set.
        """
        since, self._undecided_since = self._undecided_since or time.monotonic(), None
        opening = self._successor(dead=self.dead) if may_continue and self._successor is not None else nullcontext()
        async with opening as rest:
            if rest == "undecided" and time.monotonic() - since < _UNDECIDED_S:
                self._undecided_since = since
                return
            if rest is None or rest == "undecided":
                yield Ready(position, _error_frame(error), final=True)
                return
            async with aclosing(rest.follow(position, idle_s=idle_s)) as following:
                async for ready in following:
                    yield ready

    async def _read(self, cursor: "_Cursor") -> Ready | None:
        """Return the next events, or `None` if none arrive in time or Valkey is unavailable.

        If they are no longer kept, an `error` event is returned.
        While this process is draining, only the rest of an incomplete frame is read.
        """
        if self._draining and not cursor.offset_bytes:
            return None
        try:
            async with asyncio.timeout(_READ_TIMEOUT_S) as self._reading:
                pieces = await self._detached.read(
                    cursor.position,
                    offset_bytes=cursor.offset_bytes,
                    max_bytes=PIECE_BYTES,
                    wait_s=0 if self._lost or self._draining else _READ_WAIT_S,
                )
        except (StoreError, TimeoutError):
            if not self._draining:
                await asyncio.sleep(_RETRY_READ_S)
            return None
        finally:
            self._reading = None
        self._available_at = time.monotonic()
        try:
            return cursor.advance(pieces)
        except Gone as gone:
            if cursor.offset_bytes:  # The client would take the event for the rest of the incomplete frame.
                raise
            return Ready(cursor.position, _error_frame(gone), final=True)

    def _error(self, now: float) -> ServiceError | None:
        """Return why there will be no more events, or `None` if the reader waits for them."""
        if self._draining:
            return draining()
        if self._lost:
            return Unavailable("the process that ran the stream has ended")
        if now - self._available_at >= _OUTAGE_S:
            return Unavailable("Valkey, which stores the events of this stream, is unavailable")
        return None

    async def _renew(self) -> None:
        """Tell the stream's process that this reader still reads, so that it copies events that Valkey lacks."""
        try:
            await self._request_events()
        except StoreError:
            self._attached = False

    async def _request_events(self) -> Message | None:
        """Ask the stream's process for its events. Note whether it knows the reader or is dead."""
        answer = await self._send_request({"op": "read", "reader_id": self.reader_id})
        self._attached = answer is not None and answer["known"]
        self._lost = answer is not None and not answer["known"]
        self.dead = answer is not None and bool(answer.get("dead"))
        return answer


class _Cursor:
    """A position in a log in Valkey: after id `position`, plus `offset_bytes` of the entry that follows."""

    def __init__(self, position: int) -> None:
        self.position = position
        self.offset_bytes = 0
        self._entry_id = 0
        """The last event id of the entry that was read partially."""

    def advance(self, pieces: list[Piece]) -> Ready | None:
        """Return the unread frames in `pieces`, up to the first that are no longer kept, and advance past them.

        Raises `Gone` if these are the next ones.
        """
        if not pieces:
            return None
        frames: list[bytes] = []
        final = False
        for batch, size_bytes in pieces:
            if frames and batch.first > self.position + 1:
                break
            if self.offset_bytes and batch.last != self._entry_id:
                raise Gone(self.position)
            frames.append(batch.frames if self.offset_bytes else _frames_after(batch, self.position))
            self.offset_bytes += len(batch.frames)
            if self.offset_bytes < size_bytes:
                self._entry_id = batch.last
            else:
                self.position, self.offset_bytes, final = batch.last, 0, batch.closing
        return Ready(self.position, frames[0] if len(frames) == 1 else b"".join(frames), final)


def too_many_readers() -> ServiceError:
    REFUSED.add(1, "readers_per_stream")
    return RateLimited(f"at most {MAX_READERS} readers of a stream")


def draining() -> ServiceError:
    return Unavailable("the server is draining")


def _frames_after(batch: Batch, position: int) -> bytes:
    """Return the frames of `batch` with an id above `position`.

    Raises `Gone` if frames between `position` and `batch` are no longer kept.
    """
    if batch.first > position + 1:
        raise Gone(position)
    if batch.first == position + 1:
        return batch.frames
    frames = batch.frames.split(b"\n\n")
    return b"\n\n".join(frames[position + 1 - batch.first :])


def _error_frame(error: ServiceError) -> bytes:
    return encode_unnumbered(Failed(error_content(error, in_full=False)), now_ms())
