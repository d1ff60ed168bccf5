"""Keeps a stream's events in Valkey too, once they may be read from another process."""

import asyncio
from contextlib import aclosing, suppress

import structlog

from storage.detached_logs import Batch, DetachedLog, Emptied
from streams.log import EventLog, Gone
from streams.tasks import stopping
from streams.wire.errors import StoreError

log = structlog.get_logger()

_TRY_AGAIN_S = 0.5
_IDLE_S = 3600.0


class Spiller:
    """Follows `events` from their first that is kept to their end; never slows the stream down."""

    def __init__(self, events: EventLog, spilled: DetachedLog) -> None:
        self._events = events
        self._spilled = spilled
        self._position = 0
        self._moved = asyncio.Event()
        self._given_up = False
        self._copying = asyncio.Lock()

    async def run(self) -> None:
        """Copy until the stream's end. While Valkey is away it tries again; what was dropped meanwhile is lost.

        Concurrent calls take turns: the second finds everything copied.
        """
        async with self._copying:
            await self._run()

    async def _run(self) -> None:
        self._given_up = False
        try:
            while not stopping():
                self._position = max(self._position, self._events.dropped)
                try:
                    await self._copy()
                except (StoreError, Gone) as error:
                    log.debug("spill.waits", error=str(error))
                    await asyncio.sleep(_TRY_AGAIN_S)
                except Emptied:
                    self._position = 0
                else:
                    return
        finally:
            self._given_up = True
            self._moved.set()

    async def run_again(self) -> None:
        """Copy what an earlier run has not copied, or all of it where Valkey has lost that copy."""
        with suppress(StoreError):
            if await self._spilled.is_emptied():
                self._position = 0
        await self.run()

    async def caught_up(self) -> None:
        """Wait until all that is there now is copied, or nobody copies any more."""
        target = self._events.last_id
        while self._position < target and not self._given_up:
            self._moved.clear()
            await self._moved.wait()

    async def _copy(self) -> None:
        following = self._events.follow(self._position, idle_s=_IDLE_S, patiently=True)
        async with aclosing(following) as frames:
            async for ready in frames:
                if not ready.frames:
                    continue
                batch = Batch(self._position + 1, ready.last_id, ready.frames, closing=ready.whole)
                await self._spilled.append(batch)
                self._position = ready.last_id
                self._moved.set()
                del ready, batch  # the next may be long in coming
