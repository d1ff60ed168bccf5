"""Copy a stream's events to Valkey when they may be read from another process."""

import asyncio
from collections.abc import Callable
from contextlib import aclosing

import structlog

from actors.runtime.held_slot import HeldSlot
from storage.conversations.detached_logs import Batch, LogLost, LogTaken
from streams.log import EventLog, Gone, Ready
from streams.tasks import stopping
from streams.wire.errors import StoreError

log = structlog.get_logger()

_RETRY_AFTER_S = 0.5
_IDLE_S = 3600.0


class LogReplicator:
    """Copies `events`, from the oldest kept one to the last, without slowing down the stream that holds `slot`."""

    def __init__(
        self,
        events: EventLog,
        slot: HeldSlot,
        *,
        copied: int = 0,
        release: Callable[[int], None] = lambda _: None,
        on_taken: Callable[[], object] = lambda: None,
        may_be_succeeded: Callable[[], bool] = lambda: False,
    ) -> None:
        """`copied`: the last event id that Valkey already has.

        `release` is called with the last id that readers may have: that of the last copied event or, while Valkey
        is unavailable and `may_be_succeeded` returns `False`, of the last one. Otherwise a successor could send
        other events with the same ids. `on_taken` is called if another process has taken over the stream.
        """
        self._events = events
        self._release = release
        self._on_taken = on_taken
        self._may_be_succeeded = may_be_succeeded
        self._slot = slot
        self._detached = slot.detached_log()
        self.behind_s = 0.0
        """How long events are collected before they are copied together."""
        self._position = copied
        self._advanced = asyncio.Event()
        self._stopped = False
        self._copying = asyncio.Lock()
        self._appending = asyncio.Lock()

    async def run(self) -> None:
        """Copy until the stream's end, retrying while Valkey is unavailable.

        Events that the log drops meanwhile are lost. Concurrent calls run one after the other; the later one finds
        everything copied.
        """
        async with self._copying:
            await self._run()

    async def _run(self) -> None:
        self._stopped = False
        try:
            while not stopping():
                self._position = max(self._position, self._events.dropped)
                try:
                    await self._copy()
                except (StoreError, Gone) as error:
                    log.debug("log_copy.retried", error=str(error))
                    if not self._may_be_succeeded():
                        self._release(self._events.last_id)
                    await asyncio.sleep(_RETRY_AFTER_S)
                except LogLost:
                    self._position = 0
                except LogTaken:
                    self._on_taken()
                    return
                else:
                    return
        finally:
            self._stopped = True
            self._advanced.set()

    async def run_again(self) -> None:
        """Copy what an earlier run has not copied, and what Valkey has lost since."""
        await self.mend()
        await self.run()

    async def mend(self) -> None:
        """Append the events again that Valkey has lost. Meanwhile a run may wait for further events."""
        if not self._position:
            return
        try:
            async with self._appending:
                try:
                    await self._detached.check(self._position)
                except LogLost:
                    await self._append_again(self._position)
        except LogTaken:
            self._on_taken()
        except (StoreError, LogLost) as error:  # The next append or the next reader finds out.
            log.debug("log_copy.retried", error=str(error))

    async def caught_up(self) -> None:
        """Wait until all current events are copied, or the copying has ended."""
        target = self._events.last_id
        while self._position < target and not self._stopped:
            self._advanced.clear()
            await self._advanced.wait()

    async def _copy(self) -> None:
        following = self._events.follow(self._position, idle_s=_IDLE_S, may_lag=True)
        async with aclosing(following) as frames:
            async for ready in frames:
                if not ready.frames:
                    continue
                async with self._appending:
                    await self._append(self._position, ready)
                    self._position = ready.last_id
                self._release(ready.last_id)
                self._advanced.set()
                del ready  # Free its memory: the next events may take long to arrive.
                if self.behind_s and not self._events.closed:
                    await asyncio.sleep(self.behind_s)

    async def _append_again(self, last_id: int) -> None:
        """Append all events up to `last_id` that this process still has."""
        position = 0
        while (position := max(position, self._events.dropped)) < last_id:
            ready = self._events.ready(position)
            if ready.last_id > last_id:
                ready = Ready(last_id, b"".join(self._events.frames(position, last_id)), final=False)
            await self._append(position, ready)
            position = ready.last_id

    async def _append(self, position: int, ready: Ready) -> None:
        await self._detached.append(
            Batch(position + 1, ready.last_id, ready.frames, closing=ready.final),
            begins=position <= self._events.dropped,
            keep_bytes=self._events.keep_bytes,
            keep_s=self._slot.keep_s,
        )
