"""The events of one stream, encoded: one writer, many readers, bounded, with backpressure."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Protocol

from streams.wire.errors import ItemNotFound


class Gone(ItemNotFound):
    """A position whose events are no longer kept."""

    status_hint = 410


class Followable(Protocol):
    """A stream's events, wherever its actor lives."""

    def follow(self, after: int, *, idle_s: float) -> AsyncGenerator[tuple[int, bytes]]: ...


class _Reader:
    """A position in the log, and the timer that ends a wait without events."""

    __slots__ = ("_idle_s", "_loop", "_timer", "_waiting_since", "position", "waiter")

    def __init__(self, position: int, idle_s: float) -> None:
        self.position = position
        self.waiter: asyncio.Future[bool] | None = None
        self._idle_s = idle_s
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._waiting_since = 0.0

    async def wait(self) -> bool:
        """Whether there is something new (else: silence for `idle_s`)."""
        self.waiter = self._loop.create_future()
        self._waiting_since = self._loop.time()
        if self._timer is None:
            self._timer = self._loop.call_later(self._idle_s, self._check)
        try:
            return await self.waiter
        finally:
            self.waiter = None

    def wake(self) -> None:
        if self.waiter is not None and not self.waiter.done():
            self.waiter.set_result(True)

    def leave(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _check(self) -> None:
        # one timer a reader, moved on when it finds that there were events: none is set per event
        self._timer = None
        if self.waiter is None or self.waiter.done():
            return
        left = self._waiting_since + self._idle_s - self._loop.time()
        if left > 0.001:
            self._timer = self._loop.call_later(left, self._check)
        else:
            self.waiter.set_result(False)


class EventLog:
    """Frames with ids 1, 2, 3… `keep_bytes` of them are kept; the oldest are dropped first.

    `append` waits only while an attached reader is more than `lag_bytes` behind. A reader has read what it
    was given once it asks for more.
    """

    def __init__(self, *, keep_bytes: int, lag_bytes: int) -> None:
        self._keep_bytes = keep_bytes
        self._lag_bytes = min(lag_bytes, keep_bytes // 2)  # what an attached reader has still to read is kept
        self._frames: list[bytes] = []
        self._ends: list[int] = []  # offset of the end of each kept frame, from the stream's first byte
        self._dropped = 0
        self._dropped_end = 0
        self._readers: set[_Reader] = set()
        self._patient: set[_Reader] = set()
        self._taken = asyncio.Event()
        self.closed = False

    @property
    def last_id(self) -> int:
        return self._dropped + len(self._frames)

    @property
    def dropped(self) -> int:
        """The id of the newest event that is no longer kept."""
        return self._dropped

    @property
    def kept_bytes(self) -> int:
        return self.size_bytes - self._dropped_end

    @property
    def size_bytes(self) -> int:
        return self._ends[-1] if self._ends else self._dropped_end

    @property
    def readers(self) -> int:
        return len(self._readers)

    @property
    def lag(self) -> int:
        """Bytes that the slowest attached reader has not taken."""
        return max((self.size_bytes - self._end_of(reader.position) for reader in self._readers), default=0)

    async def append(self, frame: bytes) -> None:
        self._put(frame)
        while self._readers and self.lag > self._lag_bytes:
            self._taken.clear()
            await self._taken.wait()

    def finish(self, frame: bytes) -> None:
        """Append the last frame, waiting for nobody."""
        self._put(frame)
        self.closed = True
        self._wake()

    async def follow(
        self, after: int, *, idle_s: float = 15, patiently: bool = False
    ) -> AsyncGenerator[tuple[int, bytes]]:
        """All frames after id `after`, joined as they are ready, to the end of the stream.

        A silence of `idle_s` gives no bytes, once per silence of that length. The writer does not wait for one who
        follows `patiently`.
        """
        reader = _Reader(after, idle_s)
        (self._patient if patiently else self._readers).add(reader)
        try:
            while True:
                if reader.position < self._dropped:
                    raise Gone(f"events after {reader.position} are no longer kept")
                if reader.position < self.last_id:
                    frames = self._frames[reader.position - self._dropped :]
                    last_id = self.last_id
                    yield last_id, frames[0] if len(frames) == 1 else b"".join(frames)
                    reader.position = last_id
                    self._taken.set()
                elif self.closed:
                    return
                elif not await reader.wait():
                    yield reader.position, b""
        finally:
            reader.leave()
            self._readers.discard(reader)
            self._patient.discard(reader)
            self._taken.set()

    def _put(self, frame: bytes) -> None:
        self._frames.append(frame)
        self._ends.append(self.size_bytes + len(frame))
        if self.size_bytes - self._dropped_end > self._keep_bytes:
            self._drop()
        self._wake()

    def _drop(self) -> None:
        # an eighth at a time: taking from a list's front costs as much as what stays
        target = self.size_bytes - self._keep_bytes * 7 // 8
        count = next(i for i, end in enumerate(self._ends, 1) if end >= target or i == len(self._ends))
        count = min(count, len(self._ends) - 1)
        if count:
            self._dropped += count
            self._dropped_end = self._ends[count - 1]
            del self._frames[:count], self._ends[:count]

    def _end_of(self, position: int) -> int:
        return self._ends[position - self._dropped - 1] if position > self._dropped else self._dropped_end

    def _wake(self) -> None:
        for reader in self._readers:
            reader.wake()
        for reader in self._patient:
            reader.wake()
