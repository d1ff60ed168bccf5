"""The owner of all actor tasks: starts and finds streams, keeps ended ones readable for a while, drains them."""

import asyncio
import math
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import structlog

from actors.runtime.actor import Actor
from actors.runtime.context import Owner, Stop
from actors.runtime.long_requests import LongRequests
from actors.runtime.mailbox import Drain
from actors.runtime.report import report_crash
from storage.configs.kinds.limits import Limits
from streams.metrics import GaugeMetric
from streams.refusals import REFUSED
from streams.wire.errors import RateLimited, Unavailable

log = structlog.get_logger()
LIVE = GaugeMetric("parley_streams_live", "Running streams", ["kind"])

_DRAIN_SAVE_S = 10
_REPLICATION_TIMEOUT_S = 10
_CONCURRENT_REPLICATIONS = 32
_FINISHED_BYTES = 256 * 1024 * 1024
_CHECK_READERS_S = 5.0
"""How often to check whether the readers of an ended stream have left."""
_FRAME_BYTES = 100
"""Approximate memory overhead of a kept frame."""


class Supervisor:
    """The actors of this process. If one crashes, only its own stream ends."""

    def __init__(self, *, finished_bytes: int = _FINISHED_BYTES) -> None:
        self._by_owner: Counter[Owner] = Counter()
        self._by_app: Counter[str] = Counter()
        self._readers_by_owner: Counter[Owner] = Counter()
        self._readers = 0
        self._tasks: dict[str, tuple[Actor, asyncio.Task[None]]] = {}
        self._finished = _Finished(finished_bytes)
        self._idle = asyncio.Event()
        self._idle.set()
        self.draining = False
        self.long_requests = LongRequests()

    def __len__(self) -> int:
        return len(self._tasks)

    @property
    def by_app(self) -> Mapping[str, int]:
        """Number of running streams by app."""
        return self._by_app

    @property
    def finished_bytes(self) -> int:
        """Size of the logs of streams that have ended and can still be read."""
        return self._finished.size_bytes

    def check_streams(self, owner: Owner, limits: Limits, *, elsewhere: int) -> None:
        """Raise an error if a stream of `owner` may not start.

        `RateLimited`: the user or the app has too many streams. `Unavailable`: the process is full or draining.
        `elsewhere` is the number of the app's streams in other processes.
        """
        if self._by_owner[owner] >= limits.streams_per_user:
            REFUSED.add(1, "streams_per_user")
            raise RateLimited(f"at most {limits.streams_per_user} streams at once")
        if self._by_app[owner.app_id] + elsewhere >= limits.streams_per_app:
            REFUSED.add(1, "streams_per_app")
            raise RateLimited(f"at most {limits.streams_per_app} streams of the app at once")
        self.check_room(limits)

    def check_room(self, limits: Limits) -> None:
        """Raise `Unavailable` if the process is full or draining."""
        if self.draining:
            raise Unavailable("the server is draining")
        if len(self._tasks) >= limits.streams_per_process:
            REFUSED.add(1, "streams_per_process")
            raise Unavailable("the server is full", retry_after_s=2)

    def check_readers(self, owner: Owner, limits: Limits) -> None:
        """Raise an error if the user (`RateLimited`) or the process (`Unavailable`) has too many readers.

        Limits are at least those of streams, so each stream can be read.
        """
        per_user = max(limits.readers_per_user, limits.streams_per_user)
        if self._readers_by_owner[owner] >= per_user:
            REFUSED.add(1, "readers_per_user")
            raise RateLimited(f"at most {per_user} readers of a user at once")
        if self._readers >= max(limits.readers_per_process, limits.streams_per_process):
            REFUSED.add(1, "readers_per_process")
            raise Unavailable("the server is full", retry_after_s=2)

    def count_reader(self, owner: Owner, change: int) -> None:
        """Count a reader of `owner` that starts (1) or ends (-1), even if the stream runs in another process."""
        self._readers += change
        self._readers_by_owner[owner] += change
        if not self._readers_by_owner[owner]:
            del self._readers_by_owner[owner]

    def start(self, actor: Actor) -> None:
        """Run `actor` in a task that this supervisor owns."""
        task = asyncio.create_task(actor.run(), name=f"stream {actor.stream_id}")  # noqa: TID251 - awaited in drain()
        self._tasks[actor.stream_id] = (actor, task)
        self._idle.clear()
        self._by_owner[actor.ctx.owner] += 1
        self._by_app[actor.ctx.owner.app_id] += 1
        LIVE.add(1, actor.kind)
        task.add_done_callback(lambda done: self._ended(actor, done))

    def find(self, stream_id: str, owner: Owner) -> Actor | None:
        """Return a stream of `owner` that runs, or that has ended and can still be read."""
        actor = self._find(stream_id)
        return actor if actor is not None and actor.ctx.owner == owner else None

    def find_in_app(self, stream_id: str, app_id: str) -> Actor | None:
        """Return a stream of any user of an app that runs, or that has ended and can still be read."""
        actor = self._find(stream_id)
        return actor if actor is not None and actor.ctx.owner.app_id == app_id else None

    def _find(self, stream_id: str) -> Actor | None:
        running = self._tasks.get(stream_id)
        return running[0] if running else self._finished.find(stream_id)

    def forget(self, owner: Owner, conversation_id: str) -> list[str]:
        """Drop the ended streams of this conversation. Return their ids."""
        return self._finished.forget(owner, conversation_id)

    def live(self) -> list[Actor]:
        return [actor for actor, _ in self._tasks.values()]

    def _ended(self, actor: Actor, task: asyncio.Task[None]) -> None:
        del self._tasks[actor.stream_id]
        owner = actor.ctx.owner
        self._by_owner[owner] -= 1
        if not self._by_owner[owner]:
            del self._by_owner[owner]
        self._by_app[owner.app_id] -= 1
        LIVE.add(-1, actor.kind)
        if not self._tasks:
            self._idle.set()
        if actor.ctx.stop is not Stop.ABORTED and not actor.taken_over and actor.readable_s:
            self._finished.keep(actor)
        if not task.cancelled() and (error := task.exception()):
            report_crash(actor.stream_id, actor.kind, error)

    async def drain(self, timeout_s: float) -> None:
        """Refuse new streams and long requests, and wait up to `timeout_s` seconds for the running ones to end.

        Then end the remaining ones with an error, and wait until their answers are stored.
        """
        self.draining = True
        self.long_requests.refuse_new()
        if await self._idle_within(timeout_s):
            return
        self.long_requests.end()
        for actor in self.live():
            actor.send(Drain())
        if await self._idle_within(_DRAIN_SAVE_S):
            return
        remaining = [task for _, task in self._tasks.values()]
        log.error("drain.timed_out", streams=len(remaining))
        for task in remaining:
            task.cancel()
        if remaining:
            await asyncio.wait(remaining)

    async def replicate_finished(self) -> None:
        """Copy the logs of ended streams that can still be read to Valkey, for other processes."""
        await self._finished.replicate()

    def close(self) -> None:
        self._finished.close()

    async def idle(self) -> None:
        """Wait until no stream runs."""
        await self._idle.wait()

    async def _idle_within(self, timeout_s: float) -> bool:
        try:
            async with asyncio.timeout(timeout_s):
                await self.idle()
                await self.long_requests.idle()
        except TimeoutError:
            return False
        return True


class _Finished:
    """Actors that have ended, oldest first. If they exceed `max_bytes`, the oldest are dropped early.

    An actor that is still being read when its time is over is kept until its readers have left. If it has to be
    dropped early, its readers lose the events that they have not received.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self.size_bytes = 0
        self._actors: dict[str, tuple[float, int, Actor]] = {}
        self._being_read: dict[str, tuple[int, Actor]] = {}
        """Actors that can no longer be found but still have readers."""
        self._timer: asyncio.TimerHandle | None = None

    def keep(self, actor: Actor) -> None:
        size = actor.log.kept_bytes + _FRAME_BYTES * actor.log.last_id
        self._actors[actor.stream_id] = (time.monotonic() + actor.readable_s, size, actor)
        self.size_bytes += size
        self._drop_expired()

    def find(self, stream_id: str) -> Actor | None:
        until, _, actor = self._actors.get(stream_id, (0.0, 0, None))
        return actor if until > time.monotonic() else None

    def forget(self, owner: Owner, conversation_id: str) -> list[str]:
        stream_ids = [
            stream_id
            for stream_id, (_, _, actor) in self._actors.items()
            if actor.conversation_id == conversation_id and actor.ctx.owner == owner
        ]
        for stream_id in stream_ids:
            self._leave_to_readers(stream_id)
        return stream_ids

    async def replicate(self) -> None:
        """Copy all logs to Valkey, within a time limit, and drop them here."""
        self.close()
        remaining = [actor for until, _, actor in self._actors.values() if until > time.monotonic()]
        try:
            async with asyncio.timeout(_REPLICATION_TIMEOUT_S):
                while remaining:
                    batch, remaining = remaining[:_CONCURRENT_REPLICATIONS], remaining[_CONCURRENT_REPLICATIONS:]
                    await asyncio.gather(*(actor.replicate() for actor in batch))
        except TimeoutError:
            log.warning("drain.logs_not_copied", streams=len(remaining))
        self._actors.clear()
        self._being_read.clear()
        self.size_bytes = 0

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _drop_expired(self) -> None:
        now = time.monotonic()
        for stream_id, (_, actor) in list(self._being_read.items()):
            if not actor.readers or self._is_too_large:
                self._drop(self._being_read.pop(stream_id))
        while self._actors:
            stream_id, (until, size, actor) = next(iter(self._actors.items()))
            if self._is_too_large:
                del self._actors[stream_id]
                self._drop((size, actor))
            elif until <= now:
                self._leave_to_readers(stream_id)
            else:
                break
        if self._timer is None and (self._actors or self._being_read):
            next_expiry, _, _ = next(iter(self._actors.values()), (math.inf, 0, None))
            due_s = min(next_expiry - now, _CHECK_READERS_S if self._being_read else math.inf)
            self._timer = asyncio.get_running_loop().call_later(due_s, self._on_timer)

    @property
    def _is_too_large(self) -> bool:
        return self.size_bytes > self._max_bytes

    def _leave_to_readers(self, stream_id: str) -> None:
        """Stop finding an actor, and keep it only while it has readers."""
        _, size, actor = self._actors.pop(stream_id)
        if actor.readers:
            self._being_read[stream_id] = (size, actor)
        else:
            self.size_bytes -= size

    def _drop(self, dropped: tuple[int, Actor]) -> None:
        size, actor = dropped
        self.size_bytes -= size
        actor.log.drop_all()

    def _on_timer(self) -> None:
        self._timer = None
        self._drop_expired()


@asynccontextmanager
async def ending(supervisor: Supervisor) -> AsyncIterator[None]:
    """End all running streams when the block is left."""
    try:
        yield
    finally:
        await supervisor.drain(0)
        supervisor.close()
