"""An engine of this machine: the one thread that may touch it, and jobs whose output flows to the loop."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from typing import Generic, TypeVar

import structlog

from vendors.local.faults import engine_busy, engine_missing

log = structlog.get_logger()

Item = TypeVar("Item")
Loaded = TypeVar("Loaded")
Put = Callable[[Item], bool]
"""Hands an item to the loop and says whether anyone still listens: told no, a job stops."""

_AT_ONCE = 16


class Output(Generic[Item]):
    """What a job in the thread has put so far. Iterating gives all that is ready, up to 16 items at once.

    Nothing holds a job back: it must be of bounded size (a sentence, an answer of limited length).
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._items: deque[Item] = deque()
        self._news = asyncio.Event()
        self._ended: asyncio.Future[None] | None = None
        self.wanted = True

    def put(self, item: Item) -> bool:
        if self.wanted:
            self._loop.call_soon_threadsafe(self._arrive, item)
        return self.wanted

    def end_with(self, ended: asyncio.Future[None]) -> None:
        self._ended = ended
        ended.add_done_callback(lambda _: self._news.set())

    def _arrive(self, item: Item) -> None:
        self._items.append(item)
        self._news.set()

    def __aiter__(self) -> AsyncIterator[list[Item]]:
        return self

    async def __anext__(self) -> list[Item]:
        while not self._items:
            if self._ended is not None and self._ended.done():
                self._ended.result()
                raise StopAsyncIteration
            self._news.clear()
            await self._news.wait()
        return [self._items.popleft() for _ in range(min(len(self._items), _AT_ONCE))]


class Engine(Generic[Loaded]):
    """Loaded by its first job. Jobs run one at a time, in the order in which they came.

    A request that makes its jobs one after the other shares the engine fairly with the others.
    """

    def __init__(self, name: str, load: Callable[[], Loaded], *, places: int) -> None:
        self.name = name
        self.fault: str | None = None
        """Why it could not be loaded."""
        self._load = load
        self._loaded: Loaded | None = None
        self._places = places
        self._pool = ThreadPoolExecutor(1, thread_name_prefix=name)

    @contextmanager
    def place(self) -> Iterator[None]:
        """One of the requests that the engine works for or keeps waiting."""
        if not self._places:
            raise engine_busy(self.name)
        self._places -= 1
        try:
            yield
        finally:
            self._places += 1

    @asynccontextmanager
    async def run(self, job: Callable[[Loaded, Put[Item]], None]) -> AsyncIterator[Output[Item]]:
        """Do `job` in the thread. Leaving the block stops it, and waits until it has stopped."""
        output: Output[Item] = Output()
        work = self._pool.submit(self._work, job, output)
        ended = asyncio.wrap_future(work)
        output.end_with(ended)
        try:
            yield output
        finally:
            output.wanted = False
            if not work.cancel():
                await asyncio.wait([ended])
                ended.exception()  # seen: it was raised where the output was read, or nobody cares

    def close(self) -> None:
        """Wait for the job under way; those behind it are given up."""
        self._pool.shutdown(cancel_futures=True)

    def _work(self, job: Callable[[Loaded, Put[Item]], None], output: Output[Item]) -> None:
        if not output.wanted:
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
