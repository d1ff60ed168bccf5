"""The bounded log of one stream's encoded events: one writer, many readers, with backpressure."""

import asyncio
from bisect import bisect_left, bisect_right
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import NamedTuple, Protocol

from streams.wire.errors import ItemNotFound

PIECE_BYTES = 64 * 1024
"""Largest backlog that a reader receives at once. It is joined into a copy that only this reader holds."""


class Gone(ItemNotFound):
    """The events after the requested one are no longer kept."""

    status = 410

    def __init__(self, after: int) -> None:
        super().__init__(f"events after {after} are no longer kept")


class Ready(NamedTuple):
    """Joined frames up to id `last_id`: at most `PIECE_BYTES`, or one larger frame.

    `frames` is empty if no event arrived within the idle time. `final` is true for the last frames of the stream.
    """

    last_id: int
    frames: bytes
    final: bool


Push = Callable[[bytes], bool]
"""Writes frames synchronously and returns `True`, or writes nothing and returns `False`."""


class Following(Protocol):
    """An iterator over the frames of a stream. Close it when no more frames are needed."""

    def __aiter__(self) -> AsyncIterator[Ready]: ...

    def aclose(self) -> Awaitable[None]: ...


class Followable(Protocol):
    """The events of a stream, which may run in this process or in another one."""

    def follow(self, after: int, *, idle_s: float, push: Push | None = None) -> Following: ...


class _Reader(AsyncIterator[Ready]):
    """A reader's position in the log, and the timer that ends a wait without events."""

    __slots__ = (
        "_idle_s",
        "_log",
        "_loop",
        "_push",
        "_returned",
        "_timer",
        "_waiter",
        "_waiting_since",
        "position",
    )

    def __init__(self, log: "EventLog", position: int, idle_s: float, push: Push | None) -> None:
        self.position = position
        self._returned = position
        self._waiter: asyncio.Future[bool] | None = None
        self._log = log
        self._push = push
        self._idle_s = idle_s
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._waiting_since = 0.0

    async def __anext__(self) -> Ready:
        log = self._log
        if self._returned > self.position:
            log.acknowledge(self, self._returned)
        while True:
            if self.position < log.dropped:
                raise Gone(self.position)
            if self.position < log.last_id:
                ready = log.ready(self.position)
                self._returned = ready.last_id
                return ready
            if log.closed:
                await self.aclose()
                raise StopAsyncIteration
            self._waiter = self._loop.create_future()
            self._waiting_since = self._loop.time()
            if self._timer is None:
                self._timer = self._loop.call_later(self._idle_s, self._check)
            try:
                if not await self._waiter:
                    return Ready(self.position, b"", final=False)
            finally:
                self._waiter = None

    async def aclose(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._log.detach(self)

    def wake(self, frame: bytes) -> None:
        """Push the new `frame` if it is the only one that this reader lacks; otherwise wake the waiting reader."""
        waiter = self._waiter
        if waiter is None or waiter.done():
            return
        log = self._log
        last_id = log.last_id
        if self._push is not None and self.position == last_id - 1 and not log.closed and self._push(frame):
            self._waiting_since = self._loop.time()
            self.position = last_id
            return
        waiter.set_result(True)

    def _check(self) -> None:
        # Each reader has one timer, which restarts itself if events arrived meanwhile. So an event sets no timer.
        self._timer = None
        if self._waiter is None or self._waiter.done():
            return
        remaining = self._waiting_since + self._idle_s - self._loop.time()
        if remaining > 0.001:
            self._timer = self._loop.call_later(remaining, self._check)
        else:
            self._waiter.set_result(False)


class EventLog:
    """Frames with the ids 1, 2, 3… At most about `keep_bytes` are kept; the oldest frames are dropped first.

    `append` waits while an attached reader is more than `lag_bytes` behind. A reader has read the frames it
    received when it asks for more. Frames that an attached reader has not read are not dropped.
    """

    __slots__ = (
        "_dropped",
        "_dropped_end",
        "_ends",
        "_frames",
        "_readers",
        "_unthrottled",
        "_writers",
        "closed",
        "keep_bytes",
        "lag_bytes",
        "last_id",
        "size_bytes",
    )

    def __init__(self, *, keep_bytes: int, lag_bytes: int) -> None:
        self.keep_bytes = keep_bytes
        # The backlog of attached readers is always kept, so it must fit into the log.
        self.lag_bytes = min(lag_bytes, keep_bytes // 2)
        self._frames: list[bytes] = []
        self._ends: list[int] = []
        """The end of each kept frame, as an offset from the stream's first byte."""
        self.last_id = 0
        self.size_bytes = 0
        """Size of all frames ever appended, including those no longer kept."""
        self._dropped = 0
        self._dropped_end = 0
        self._readers: list[_Reader] = []
        self._unthrottled: list[_Reader] = []
        """Readers that the writer does not wait for."""
        self._writers: list[asyncio.Future[None]] = []
        """Writers that wait for room."""
        self.closed = False

    @property
    def dropped(self) -> int:
        """The id of the newest event that is no longer kept."""
        return self._dropped

    @property
    def kept_bytes(self) -> int:
        return self.size_bytes - self._dropped_end

    @property
    def readers(self) -> int:
        return len(self._readers)

    @property
    def lag(self) -> int:
        """Bytes that the slowest attached reader has not read."""
        return max((self.size_bytes - self._end_of(reader.position) for reader in self._readers), default=0)

    def put(self, frame: bytes) -> bool:
        """Append a frame without waiting. Return whether there is room for more."""
        self.last_id += 1
        end = self.size_bytes = self.size_bytes + len(frame)
        self._frames.append(frame)
        self._ends.append(end)
        if end - self._dropped_end > self.keep_bytes:
            self._drop()
        for reader in self._readers:
            reader.wake(frame)
        for reader in self._unthrottled:
            reader.wake(frame)
        if self._writers:
            self._wake_writers()
        # A short log cannot be full: the comparison usually spares the call.
        return end - self.lag_bytes <= self._dropped_end or not self.full

    async def append(self, frame: bytes) -> None:
        if not self.put(frame):
            await self.wait_for_room()

    async def wait_for_room(self) -> None:
        """Wait until no attached reader is too far behind."""
        while self.full:
            room = asyncio.get_running_loop().create_future()
            self._writers.append(room)
            await room

    def finish(self, frame: bytes) -> None:
        """Append the last frame without waiting and close the log."""
        self.closed = True
        self.put(frame)

    def follow(
        self, after: int, *, idle_s: float = 15, may_lag: bool = False, push: Push | None = None
    ) -> Following:
        """Iterate over all frames after id `after`, joined into pieces, to the end of the stream.

        After every `idle_s` seconds without events, an empty piece is returned. The writer does not wait for a
        reader that `may_lag`. While the reader waits, new frames go to `push`; the reader receives a frame itself
        only if `push` refuses it, or if it is the last one. Raises `Gone` if frames after `after` were dropped.
        """
        reader = _Reader(self, after, idle_s, push)
        (self._unthrottled if may_lag else self._readers).append(reader)
        return reader

    def ready(self, after: int) -> Ready:
        """Return the next frames after id `after`: as many as fit into a piece, but at least one."""
        first = after - self._dropped
        begin = self._ends[first - 1] if first else self._dropped_end
        if self.size_bytes - begin <= PIECE_BYTES:
            frames, last_id = self._frames[first:], self.last_id
        else:
            end = max(bisect_right(self._ends, begin + PIECE_BYTES, first), first + 1)
            frames, last_id = self._frames[first:end], self._dropped + end
        joined = frames[0] if len(frames) == 1 else b"".join(frames)
        return Ready(last_id, joined, final=self.closed and last_id == self.last_id)

    def frames(self, after: int, last_id: int) -> list[bytes]:
        """Return the frames after id `after`, up to id `last_id`."""
        return self._frames[after - self._dropped : last_id - self._dropped]

    def fork(self) -> "EventLog":
        """Return another log with the same limits and the same frames. They share the memory of the frames."""
        fork = EventLog(keep_bytes=self.keep_bytes, lag_bytes=self.lag_bytes)
        for frame in self._frames:
            fork.put(frame)
        return fork

    def acknowledge(self, reader: _Reader, last_id: int) -> None:
        """Record that `reader` has read all frames up to id `last_id`."""
        reader.position = last_id
        if self._writers:
            self._wake_writers()

    def detach(self, reader: _Reader) -> None:
        """Remove `reader`, so that the writer no longer waits for it."""
        for readers in (self._readers, self._unthrottled):
            if reader in readers:
                readers.remove(reader)
        self._wake_writers()

    def drop_all(self) -> None:
        """Drop all frames of a closed log. Readers that lack some get `Gone`."""
        self._dropped, self._dropped_end = self.last_id, self.size_bytes
        self._frames.clear()
        self._ends.clear()

    def _wake_writers(self) -> None:
        writers, self._writers = self._writers, []
        for writer in writers:
            if not writer.done():
                writer.set_result(None)

    @property
    def full(self) -> bool:
        """Whether an attached reader is too far behind."""
        limit = self.size_bytes - self.lag_bytes
        if limit > self._dropped_end:
            for reader in self._readers:
                if self._end_of(reader.position) < limit:
                    return True
        return False

    def _drop(self) -> None:
        # Drop an eighth of the log at a time, because deleting from the front of a list moves all remaining items.
        # Frames that attached readers have not read stay. Their size is bounded, because the writer waits.
        target = self.size_bytes - self.keep_bytes * 7 // 8
        read = min((reader.position for reader in self._readers), default=self.last_id) - self._dropped
        count = min(bisect_left(self._ends, target) + 1, len(self._ends) - 1, read)
        if count > 0:
            self._dropped += count
            self._dropped_end = self._ends[count - 1]
            del self._frames[:count], self._ends[:count]

    def _end_of(self, position: int) -> int:
        return self._ends[position - self._dropped - 1] if position > self._dropped else self._dropped_end
