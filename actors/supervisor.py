"""Owns every actor's task: admits, finds, drains."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import structlog
from prometheus_client import Gauge

from actors.actor import Actor
from actors.context import Owner
from actors.mailbox import Drain
from streams.wire.errors import RateLimited, Unavailable

log = structlog.get_logger()
LIVE = Gauge("parley_streams_live", "Streams whose actor is running", ["kind"])

_DRAIN_SAVE_S = 10


class Supervisor:
    """The actors of this process. One that crashes has ended its own stream and nobody else's."""

    def __init__(self) -> None:
        self._by_owner: Counter[Owner] = Counter()
        self._by_app: Counter[str] = Counter()
        self._tasks: dict[str, tuple[Actor, asyncio.Task[None]]] = {}
        self._idle = asyncio.Event()
        self._idle.set()
        self.draining = False

    def __len__(self) -> int:
        return len(self._tasks)

    def check_owner(self, owner: Owner, *, per_user: int, per_app: int) -> None:
        """Refuse an owner or an app that has its fill of streams in this process."""
        if self._by_owner[owner] >= per_user:
            raise RateLimited(f"at most {per_user} streams at once", retry_after_s=1)
        if self._by_app[owner.app_id] >= per_app:
            raise RateLimited(f"at most {per_app} streams of the app at once", retry_after_s=1)

    def check_open(self, *, limit: int) -> None:
        """Refuse while the process is going or full."""
        if self.draining:
            raise Unavailable("the server is draining", retry_after_s=1)
        if len(self._tasks) >= limit:
            raise Unavailable("the server is full", retry_after_s=2)

    def start(self, actor: Actor) -> None:
        """Run `actor`; its task is this supervisor's from here on."""
        task = asyncio.create_task(actor.run(), name=f"stream {actor.stream_id}")  # noqa: TID251 - awaited in drain()
        self._tasks[actor.stream_id] = (actor, task)
        self._idle.clear()
        self._by_owner[actor.ctx.owner] += 1
        self._by_app[actor.ctx.owner.app_id] += 1
        LIVE.labels(actor.kind).inc()
        task.add_done_callback(lambda done: self._ended(actor, done))

    def find(self, stream_id: str) -> Actor | None:
        found = self._tasks.get(stream_id)
        return found[0] if found else None

    def _ended(self, actor: Actor, task: asyncio.Task[None]) -> None:
        del self._tasks[actor.stream_id]
        owner = actor.ctx.owner
        self._by_owner[owner] -= 1
        if not self._by_owner[owner]:
            del self._by_owner[owner]
        self._by_app[owner.app_id] -= 1
        LIVE.labels(actor.kind).dec()
        if not self._tasks:
            self._idle.set()
        if not task.cancelled() and (error := task.exception()):
            log.error("actor.crashed", stream_id=actor.stream_id, kind=actor.kind, exc_info=error)

    async def drain(self, timeout_s: float) -> None:
        """Take no more, let what runs run for `timeout_s`, then end it with an error and wait until it is kept."""
        self.draining = True
        if await self._idle_within(timeout_s):
            return
        for actor, _ in self._tasks.values():
            actor.tell(Drain())
        if await self._idle_within(_DRAIN_SAVE_S):
            return
        left = [task for _, task in self._tasks.values()]
        log.error("drain.cut", streams=len(left))
        for task in left:
            task.cancel()
        await asyncio.wait(left)

    async def idle(self) -> None:
        """Wait until no stream runs."""
        await self._idle.wait()

    async def _idle_within(self, timeout_s: float) -> bool:
        try:
            async with asyncio.timeout(timeout_s):
                await self.idle()
        except TimeoutError:
            return False
        return True


@asynccontextmanager
async def open_supervisor() -> AsyncIterator[Supervisor]:
    """A supervisor that ends what still runs when the block is left."""
    supervisor = Supervisor()
    try:
        yield supervisor
    finally:
        await supervisor.drain(0)
