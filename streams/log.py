"""The events of one stream, encoded: one writer, many readers, bounded, with backpressure."""

import asyncio
from bisect import bisect_left, bisect_right
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import NamedTuple, Protocol

from streams.wire.errors import ItemNotFound

PIECE_BYTES = 64 * 1024
"""How much of its backlog a reader is given at once: that is joined for this reader alone."""


class Gone(ItemNotFound):
    """A position whose events are no longer kept."""

    status_hint = 410


class Ready(NamedTuple):
    """Frames up to id `last_id`, joined: at most `PIECE_BYTES`, or one larger frame.

    `frames` is empty after a silence. `whole`: these are the last frames of the stream.
    """

    last_id: int
    frames: bytes
    whole: bool


Push = Callable[[bytes], bool]
"""Takes frames at once, or not at all."""


class Following(Protocol):
    """Who follows a stream: gives what is ready to who asks, and is closed when nobody asks any more."""

    def __aiter__(self) -> AsyncIterator[Ready]: ...

    def aclose(self) -> Awaitable[None]: ...


class Followable(Protocol):
    """A stream's events, wherever its actor lives."""

    def follow(self, after: int, *, idle_s: float, push: Push | None = None) -> Following: ...


class _Reader(AsyncIterator[Ready]):
    """A position in the log, and the timer that ends a wait without events."""

    __slots__ = ("_given", "_idle_s", "_log", "_loop", "_push", "_timer", "_waiter", "_waiting_since", "position")

    def __init__(self, log: "EventLog", position: int, idle_s: float, push: Push | None) -> None:
        self.position = position
        self._given = position
        self._waiter: asyncio.Future[bool] | None = None
        self._log = log
        self._push = push
        self._idle_s = idle_s
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._waiting_since = 0.0

    async def __anext__(self) -> Ready:
        log = self._log
        if self._given > self.position:
            log.taken(self, self._given)
        while True:
            if self.position < log.dropped:
                raise Gone(f"events after {self.position} are no longer kept")
            if self.position < log.last_id:
                ready = log.ready(self.position)
                self._given = ready.last_id
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
                    return Ready(self.position, b"", whole=False)
            finally:
                self._waiter = None

    async def aclose(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._log.left(self)

    def wake(self, frame: bytes) -> None:
        """There is a new frame: it is pushed where it is all that is missing, or given to who waits."""
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
        # one timer a reader, moved on when it finds that there were events: none is set per event
        self._timer = None
        if self._waiter is None or self._waiter.done():
            return
        left = self._waiting_since + self._idle_s - self._loop.time()
        if left > 0.001:
            self._timer = self._loop.call_later(left, self._check)
        else:
            self._waiter.set_result(False)


class EventLog:
    """Frames with ids 1, 2, 3… `keep_bytes` of them are kept; the oldest are dropped first.

    `append` waits only while an attached reader is more than `lag_bytes` behind. A reader has read what it
    was given once it asks for more. Frames that an attached reader has still to read are not dropped.
    """

    __slots__ = (
        "_dropped",
        "_dropped_end",
        "_ends",
        "_frames",
        "_keep_bytes",
        "_lag_bytes",
        "_patient",
        "_readers",
        "_writers",
        "closed",
        "last_id",
        "size_bytes",
    )

    def __init__(self, *, keep_bytes: int, lag_bytes: int) -> None:
        self._keep_bytes = keep_bytes
        self._lag_bytes = min(lag_bytes, keep_bytes // 2)  # what an attached reader has still to read is kept
        self._frames: list[bytes] = []
        self._ends: list[int] = []  # offset of the end of each kept frame, from the stream's first byte
        self.last_id = 0
        self.size_bytes = 0
        """Of all frames, those that are no longer kept too."""
        self._dropped = 0
        self._dropped_end = 0
        self._readers: list[_Reader] = []
        self._patient: list[_Reader] = []
        self._writers: list[asyncio.Future[None]] = []
        """Those that wait for room."""
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
        """Bytes that the slowest attached reader has not taken."""
        return max((self.size_bytes - self._end_of(reader.position) for reader in self._readers), default=0)

    def put(self, frame: bytes) -> bool:
        """Append, waiting for nobody; whether there is room for more."""
        self.last_id += 1
        end = self.size_bytes = self.size_bytes + len(frame)
        self._frames.append(frame)
        self._ends.append(end)
        if end - self._dropped_end > self._keep_bytes:
            self._drop()
        for reader in self._readers:
            reader.wake(frame)
        for reader in self._patient:
            reader.wake(frame)
        if self._writers:
            self._wake_writers()
        return end - self._lag_bytes <= self._dropped_end or not self._full()

    async def append(self, frame: bytes) -> None:
        if not self.put(frame):
            await self.room()

    async def room(self) -> None:
        """Wait until no attached reader is too far behind."""
        while self._full():
            taken = asyncio.get_running_loop().create_future()
            self._writers.append(taken)
            await taken

    def finish(self, frame: bytes) -> None:
        """Append the last frame, waiting for nobody."""
        self.closed = True
        self.put(frame)

    def follow(
        self, after: int, *, idle_s: float = 15, patiently: bool = False, push: Push | None = None
    ) -> Following:
        """All frames after id `after`, joined in pieces as they are ready, to the end of the stream.

        A silence of `idle_s` gives no bytes, once per silence of that length. The writer does not wait for one who
        follows `patiently`. While the follower waits, what comes is given to `push`, and to the follower only
        when that refuses, or with the end.
        """
        reader = _Reader(self, after, idle_s, push)
        (self._patient if patiently else self._readers).append(reader)
        return reader

    def ready(self, after: int) -> Ready:
        """The next frames after id `after`: as many as fit into a piece, at least one."""
        first = after - self._dropped
        begin = self._ends[first - 1] if first else self._dropped_end
        if self.size_bytes - begin <= PIECE_BYTES:
            frames, last_id = self._frames[first:], self.last_id
        else:
            end = max(bisect_right(self._ends, begin + PIECE_BYTES, first), first + 1)
            frames, last_id = self._frames[first:end], self._dropped + end
        joined = frames[0] if len(frames) == 1 else b"".join(frames)
        return Ready(last_id, joined, whole=self.closed and last_id == self.last_id)

    def taken(self, reader: _Reader, last_id: int) -> None:
        reader.position = last_id
        if self._writers:
            self._wake_writers()

    def left(self, reader: _Reader) -> None:
        """`reader` follows no more."""
        for readers in (self._readers, self._patient):
            if reader in readers:
                readers.remove(reader)
        self._wake_writers()

    def _wake_writers(self) -> None:
        writers, self._writers = self._writers, []
        for writer in writers:
            if not writer.done():
                writer.set_result(None)

    def _full(self) -> bool:
        limit = self.size_bytes - self._lag_bytes
        if limit > self._dropped_end:
            for reader in self._readers:
                if self._end_of(reader.position) < limit:
                    return True
        return False

    def _drop(self) -> None:
        # An eighth at a time, because deleting from the front of a list costs as much as what stays. Frames that
        # attached readers have not read stay. They are bounded: the writer waits while a reader lags.
        target = self.size_bytes - self._keep_bytes * 7 // 8
        read = min((reader.position for reader in self._readers), default=self.last_id) - self._dropped
        count = min(bisect_left(self._ends, target) + 1, len(self._ends) - 1, read)
        if count > 0:
            self._dropped += count
            self._dropped_end = self._ends[count - 1]
            del self._frames[:count], self._ends[:count]

    def _end_of(self, position: int) -> int:
        return self._ends[position - self._dropped - 1] if position > self._dropped else self._dropped_end
