"""The healthy clients beside an attack: paced streams and small requests, in a process of their own.

The process answers each message on its pipe with a `Window`: what its clients saw since the message before.
"""

import asyncio
import multiprocessing
import os
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection as Pipe
from urllib.parse import urlsplit

import uvloop

from bench.arrivals import prepare
from bench.client import Client, Sample, Stream, Target
from bench.figures import Spread
from bench.machine import prefer
from bench.scenarios import Load
from streams.tasks import background, unless_failed

_PROBE_EVERY_S = 0.05
_PROBE_TIMEOUT_S = 10.0
_AFTER_FAILURE_S = 0.1
_TICK_S = 0.005
_START_S = 30.0
_STOP_S = 10.0
_FAULT_CHARACTERS = 120


@dataclass(frozen=True, slots=True)
class Window:
    """What the healthy clients saw in a span of time."""

    gap: Spread = field(default_factory=Spread)
    """Between two reads of a stream that brought events, and what the running streams have waited at the end."""
    first_event: Spread = field(default_factory=Spread)
    health: Spread = field(default_factory=Spread)
    """Answers of `/healthz` over a kept connection."""
    rest: Spread = field(default_factory=Spread)
    """Answers of `/bp/ai/conversations`, with a session."""
    streams: int = 0
    """That ended."""
    failures: Mapping[str, int] = field(default_factory=dict)
    """Streams and requests that failed, by the reason."""
    late_ms: float = 0
    """How late the longest delayed timer of the witness itself fired: what its own core adds to any figure."""

    @property
    def failed(self) -> int:
        return sum(self.failures.values())


class Witness:
    """The process of the healthy clients, as its parent sees it."""

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe

    async def window(self) -> Window:
        """What they saw since the last call."""
        self._pipe.send("window")
        window: Window = await asyncio.to_thread(self._received)
        return window

    def _received(self) -> Window:
        if not self._pipe.poll(_START_S):
            raise TimeoutError("the process of the healthy clients does not answer")
        window: Window = self._pipe.recv()
        return window


@asynccontextmanager
async def witnessing(target: Target, load: Load) -> AsyncIterator[Witness]:
    """Run the healthy clients as long as the block lasts."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_main, args=(theirs, target, load), daemon=True)
    process.start()
    try:
        witness = Witness(ours)
        await witness.window()
        yield witness
    finally:
        ours.close()
        await asyncio.to_thread(process.join, _STOP_S)
        if process.is_alive():
            process.kill()


def _main(pipe: Pipe, target: Target, load: Load) -> None:
    prepare()
    prefer(os.getpid())
    uvloop.run(_Clients(target, load).answer(pipe))


class _Clients:
    """`load.at_once` streams at a time, each followed by the next, and a probe of each kind."""

    def __init__(self, target: Target, load: Load) -> None:
        self._load = load
        self._client = Client(target, load)
        self._live: list[Stream] = [Stream(0)] * load.at_once
        session = {"X-Service-App-Id": target.app_id, "X-Service-Session-Token": target.tokens[0]}
        self._health = _Probe(target.url, "/healthz", {})
        self._rest = _Probe(target.url, "/bp/ai/conversations", session)
        self._clear()

    def _clear(self) -> None:
        self._client.sample = Sample()
        self._ended: list[Stream] = []
        self._late_s = 0.0

    async def answer(self, pipe: Pipe) -> None:
        """Run the clients, and answer each message with a window, until the pipe is closed."""
        loop, over = asyncio.get_running_loop(), asyncio.Event()

        def message() -> None:
            try:
                pipe.recv()
            except EOFError:
                loop.remove_reader(pipe.fileno())
                over.set()
            else:
                pipe.send(self._window())

        loop.add_reader(pipe.fileno(), message)
        async with background(self._run()) as running:
            with unless_failed(running):
                await over.wait()

    async def _run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._tick())
            tasks.create_task(self._health.run())
            tasks.create_task(self._rest.run())
            for place in range(self._load.at_once):
                tasks.create_task(self._streams(place))

    async def _streams(self, place: int) -> None:
        await asyncio.sleep(self._load.over_s * place / self._load.at_once)
        while True:
            stream = self._live[place] = Stream(time.monotonic())
            await self._client.ask(stream)
            self._ended.append(stream)
            if stream.fault or stream.outcome != "end":
                await asyncio.sleep(_AFTER_FAILURE_S)

    async def _tick(self) -> None:
        while True:
            due = time.monotonic() + _TICK_S
            await asyncio.sleep(_TICK_S)
            self._late_s = max(self._late_s, time.monotonic() - due)

    def _window(self) -> Window:
        now = time.monotonic()
        waiting = [now - (one.last_event or one.begun) for one in self._live if one.begun and not _over(one)]
        faults = Counter(
            (stream.fault or stream.outcome)[:_FAULT_CHARACTERS]
            for stream in self._ended
            if stream.fault or stream.outcome != "end"
        )
        window = Window(
            gap=Spread.of([*self._client.sample.gaps_s, *waiting]),
            first_event=Spread.of(one.first_event - one.begun for one in self._ended if one.first_event),
            health=Spread.of(self._health.take()),
            rest=Spread.of(self._rest.take()),
            streams=len(self._ended),
            failures=dict(faults + self._health.take_faults() + self._rest.take_faults()),
            late_ms=self._late_s * 1000,
        )
        self._clear()
        return window


class _Probe:
    """Asks for `path` again and again over one connection, and notes how long each answer took."""

    def __init__(self, url: str, path: str, headers: Mapping[str, str]) -> None:
        parts = urlsplit(url)
        fields = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        self._path = path
        self._host, self._port = parts.hostname, parts.port or 80
        self._request = f"GET {path} HTTP/1.1\r\nHost: {parts.netloc}\r\n{fields}\r\n".encode()
        self._took_s: list[float] = []
        self._asked_at = 0.0
        """When the request was sent whose answer is awaited; 0: none is."""
        self._faults: Counter[str] = Counter()

    def take(self) -> list[float]:
        """Seconds of the answers since the last call, and of the wait for one that has not come yet."""
        taken, self._took_s = self._took_s, []
        return [*taken, time.monotonic() - self._asked_at] if self._asked_at else taken

    def take_faults(self) -> Counter[str]:
        taken, self._faults = self._faults, Counter()
        return taken

    async def run(self) -> None:
        while True:
            try:
                async with asyncio.timeout(_PROBE_TIMEOUT_S):
                    reader, writer = await asyncio.open_connection(self._host, self._port)
                try:
                    while True:
                        await self._ask(reader, writer)
                        await asyncio.sleep(_PROBE_EVERY_S)
                finally:
                    writer.close()
            except (OSError, EOFError, ValueError) as error:  # a TimeoutError is an OSError
                self._faults[f"{self._path}: {error!r}"[:_FAULT_CHARACTERS]] += 1
                await asyncio.sleep(_AFTER_FAILURE_S)

    async def _ask(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Read one answer with a `Content-Length`; `ValueError` where its status is not 200."""
        self._asked_at = time.monotonic()
        try:
            async with asyncio.timeout(_PROBE_TIMEOUT_S):
                writer.write(self._request)
                head = await reader.readuntil(b"\r\n\r\n")
                if not head.startswith(b"HTTP/1.1 200"):
                    raise ValueError(head.partition(b"\r\n")[0].decode(errors="replace"))
                _, _, length = head.lower().partition(b"content-length: ")
                await reader.readexactly(int(length.partition(b"\r\n")[0]))
        finally:
            self._took_s.append(time.monotonic() - self._asked_at)
            self._asked_at = 0.0


def _over(stream: Stream) -> bool:
    return bool(stream.fault or stream.outcome)
