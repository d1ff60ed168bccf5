"""A local engine with one thread that runs its jobs, whose output is passed to the event loop."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from typing import Generic, TypeVar

import structlog

from vendors.local.engines.faults import engine_busy, engine_missing

log = structlog.get_logger()

Item = TypeVar("Item")
Loaded = TypeVar("Loaded")
Put = Callable[[Item], bool]
"""Pass an item to the event loop. Return false if the output is no longer wanted, after which the job returns."""

_MAX_BATCH = 16


class Output(Generic[Item]):
    """The output of a job. Iterating yields lists of up to 16 items that are ready.

    There is no backpressure, so the output of a job must be bounded (a sentence, a reply of limited length).
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._items: deque[Item] = deque()
        self._changed = asyncio.Event()
        self._ended: asyncio.Future[None] | None = None
        self.is_wanted = True

    def put(self, item: Item) -> bool:
        if self.is_wanted:
            self._loop.call_soon_threadsafe(self._append, item)
        return self.is_wanted

    def set_end(self, ended: asyncio.Future[None]) -> None:
        self._ended = ended
        ended.add_done_callback(lambda _: self._changed.set())

    def _append(self, item: Item) -> None:
        self._items.append(item)
        self._changed.set()

    def __aiter__(self) -> AsyncIterator[list[Item]]:
        return self

    async def __anext__(self) -> list[Item]:
        while not self._items:
            if self._ended is not None and self._ended.done():
                self._ended.result()
                raise StopAsyncIteration
            self._changed.clear()
            await self._changed.wait()
        return [self._items.popleft() for _ in range(min(len(self._items), _MAX_BATCH))]


class Engine(Generic[Loaded]):
    """Runs jobs one at a time in FIFO order. The first job loads the engine.

    A request with several jobs submits them one after the other, so that requests share the engine fairly.
    """

    def __init__(self, name: str, load: Callable[[], Loaded], *, max_requests: int) -> None:
        self.name = name
        self.fault: str | None = None
        """The reason why the engine could not be loaded, if any."""
        self._load = load
        self._loaded: Loaded | None = None
        self._free_slots = max_requests
        self._pool = ThreadPoolExecutor(1, thread_name_prefix=name)

    @contextmanager
    def slot(self) -> Iterator[None]:
        """Take one of the slots for running and waiting requests. Raise a `Fault` if none is free."""
        if not self._free_slots:
            raise engine_busy(self.name)
        self._free_slots -= 1
        try:
            yield
        finally:
            self._free_slots += 1

    @asynccontextmanager
    async def run(self, job: Callable[[Loaded, Put[Item]], None]) -> AsyncIterator[Output[Item]]:
        """Run `job` in the thread. Leaving the block stops the job and waits for its end."""
        output: Output[Item] = Output()
        work = self._pool.submit(self._work, job, output)
        ended = asyncio.wrap_future(work)
        output.set_end(ended)
        try:
            yield output
        finally:
            output.is_wanted = False
            if not work.cancel():
                await asyncio.wait([ended])
                ended.exception()  # Marked as retrieved: either the output raised it, or no one reads the output.

    def close(self) -> None:
        """Wait for the running job and cancel the waiting ones."""
        self._pool.shutdown(cancel_futures=True)

    def _work(self, job: Callable[[Loaded, Put[Item]], None], output: Output[Item]) -> None:
        if not output.is_wanted:
            return
        if self._loaded is None:
            self._loaded = self._load_once()
        job(self._loaded, output.put)

    def _load_once(self) -> Loaded:
        if self.fault is None:
            try:
                return self._load()
            except Exception as error:
                log.warning("engine.failed", engine=self.name, exc_info=error)
                self.fault = f"loading it failed: {type(error).__name__}: {error}"
        raise engine_missing(self.name, self.fault)
