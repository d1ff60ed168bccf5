"""The healthy clients during an attack: paced streams, small requests and uploads, in a separate process.

The process answers each message on its pipe with a `Window` of measurements since the previous message.
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
from bench.machine import raise_priority
from bench.scenarios import Load
from streams.tasks import background, unless_failed

_PROBE_EVERY_S = 0.05
_UPLOAD_EVERY_S = 1.0
_UPLOAD_BYTES = 120 * 1024
_CHUNK_BYTES = 4 * 1024
_PROBE_TIMEOUT_S = 10.0
_AFTER_FAILURE_S = 0.1
_TICK_S = 0.005
_START_S = 30.0
_STOP_S = 10.0
_FAULT_CHARACTERS = 120


@dataclass(frozen=True, slots=True)
class Window:
    """The measurements of the healthy clients in a span of time."""

    gap: Spread = field(default_factory=Spread)
    """Times between two reads that brought events, and the current waiting times of the running streams."""
    transit: Spread = field(default_factory=Spread)
    """Times from the vendor's write of a delta to the client's read; empty if the vendor does not report them."""
    first_event: Spread = field(default_factory=Spread)
    health: Spread = field(default_factory=Spread)
    """Response times of `/healthz` over a keep-alive connection."""
    rest: Spread = field(default_factory=Spread)
    """Response times of `/bp/ai/conversations` with a session."""
    upload: Spread = field(default_factory=Spread)
    """Response times of a login of `_UPLOAD_BYTES` in chunks of `_CHUNK_BYTES`, over a keep-alive connection."""
    streams: int = 0
    """Number of streams that ended."""
    failures: Mapping[str, int] = field(default_factory=dict)
    """Number of streams and requests that failed, by reason."""
    late_ms: float = 0
    """The longest delay of a timer in the clients' own process, which may have delayed every other figure."""

    @property
    def failed(self) -> int:
        return sum(self.failures.values())


class HealthyClients:
    """A handle for the process of the healthy clients."""

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe

    async def window(self) -> Window:
        """Return the measurements since the previous call."""
        self._pipe.send("window")
        window: Window = await asyncio.to_thread(self._received)
        return window

    def _received(self) -> Window:
        if not self._pipe.poll(_START_S):
            raise TimeoutError("the process of the healthy clients does not respond")
        window: Window = self._pipe.recv()
        return window


@asynccontextmanager
async def run_healthy_clients(target: Target, load: Load) -> AsyncIterator[HealthyClients]:
    """Run the healthy clients until the block ends."""
    context = multiprocessing.get_context("spawn")
    parent_pipe, child_pipe = context.Pipe()
    process = context.Process(target=_main, args=(child_pipe, target, load), daemon=True)
    process.start()
    try:
        clients = HealthyClients(parent_pipe)
        await clients.window()
        yield clients
    finally:
        parent_pipe.close()
        await asyncio.to_thread(process.join, _STOP_S)
        if process.is_alive():
            process.kill()


def _main(pipe: Pipe, target: Target, load: Load) -> None:
    prepare()
    raise_priority(os.getpid())
    uvloop.run(_Clients(target, load).answer(pipe))


class _Clients:
    """`load.at_once` streams at a time in a closed loop, and probes of two paths and of an upload."""

    def __init__(self, target: Target, load: Load) -> None:
        self._load = load
        self._client = Client(target, load)
        self._live: list[Stream] = [Stream(0)] * load.at_once
        session = {"X-Service-App-Id": target.app_id, "X-Service-Session-Token": target.tokens[0]}
        self._health = _Probe(target.url, "/healthz", {})
        self._rest = _Probe(target.url, "/bp/ai/conversations", session)
        app = {"X-Service-App-Id": target.app_id}
        login = b'{"device":{"id":"healthy"}}'.ljust(_UPLOAD_BYTES)
        self._upload = _Probe(target.url, "/bp/user/login", app, body=login, every_s=_UPLOAD_EVERY_S)
        self._clear()

    def _clear(self) -> None:
        self._client.sample = Sample()
        self._ended: list[Stream] = []
        self._late_s = 0.0

    async def answer(self, pipe: Pipe) -> None:
        """Run the clients and answer each message with a window until the pipe is closed."""
        loop, stopped = asyncio.get_running_loop(), asyncio.Event()

        def message() -> None:
            try:
                pipe.recv()
            except EOFError:
                loop.remove_reader(pipe.fileno())
                stopped.set()
            else:
                pipe.send(self._window())

        loop.add_reader(pipe.fileno(), message)
        async with background(self._run()) as running:
            with unless_failed(running):
                await stopped.wait()

    async def _run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._tick())
            tasks.create_task(self._health.run())
            tasks.create_task(self._rest.run())
            tasks.create_task(self._upload.run())
            for index in range(self._load.at_once):
                tasks.create_task(self._streams(index))

    async def _streams(self, index: int) -> None:
        await asyncio.sleep(self._load.over_s * index / self._load.at_once)
        while True:
            stream = self._live[index] = Stream(time.monotonic())
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
        waiting = [
            now - (stream.last_event or stream.begun)
            for stream in self._live
            if stream.begun and not _has_ended(stream)
        ]
        faults = Counter(
            (stream.fault or stream.outcome)[:_FAULT_CHARACTERS]
            for stream in self._ended
            if stream.fault or stream.outcome != "end"
        )
        window = Window(
            gap=Spread.of([*self._client.sample.gaps_s, *waiting]),
            transit=Spread.of(self._client.sample.transits_s),
            first_event=Spread.of(
                stream.first_event - stream.begun for stream in self._ended if stream.first_event
            ),
            health=Spread.of(self._health.collect()),
            rest=Spread.of(self._rest.collect()),
            upload=Spread.of(self._upload.collect()),
            streams=len(self._ended),
            failures=dict(
                faults + self._health.collect_faults() + self._rest.collect_faults() + self._upload.collect_faults()
            ),
            late_ms=self._late_s * 1000,
        )
        self._clear()
        return window


class _Probe:
    """Requests `path` repeatedly over one connection and records the response times.

    A request with a `body` is a POST in chunks.
    """

    def __init__(
        self,
        url: str,
        path: str,
        headers: Mapping[str, str],
        *,
        body: bytes = b"",
        every_s: float = _PROBE_EVERY_S,
    ) -> None:
        parts = urlsplit(url)
        fields = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        self._path = path
        self._host, self._port = parts.hostname, parts.port or 80
        if body:
            fields += "Transfer-Encoding: chunked\r\n"
        head = f"{'POST' if body else 'GET'} {path} HTTP/1.1\r\nHost: {parts.netloc}\r\n{fields}\r\n"
        self._request = head.encode() + (_chunks(body) if body else b"")
        self._every_s = every_s
        self._took_s: list[float] = []
        self._sent_at = 0.0
        """When the pending request was sent; 0 if none is pending."""
        self._faults: Counter[str] = Counter()

    def collect(self) -> list[float]:
        """Return the response times since the previous call, and the current waiting time of a pending request."""
        collected, self._took_s = self._took_s, []
        return [*collected, time.monotonic() - self._sent_at] if self._sent_at else collected

    def collect_faults(self) -> Counter[str]:
        collected, self._faults = self._faults, Counter()
        return collected

    async def run(self) -> None:
        while True:
            try:
                async with asyncio.timeout(_PROBE_TIMEOUT_S):
                    reader, writer = await asyncio.open_connection(self._host, self._port)
                try:
                    while True:
                        await self._ask(reader, writer)
                        await asyncio.sleep(self._every_s)
                finally:
                    writer.close()
            except (OSError, EOFError, ValueError) as error:  # TimeoutError is a subclass of OSError.
                self._faults[f"{self._path}: {error!r}"[:_FAULT_CHARACTERS]] += 1
                await asyncio.sleep(_AFTER_FAILURE_S)

    async def _ask(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Send the request and read a response with a `Content-Length`.

        Raise `ValueError` unless its status is 200.
        """
        self._sent_at = time.monotonic()
        try:
            async with asyncio.timeout(_PROBE_TIMEOUT_S):
                writer.write(self._request)
                head = await reader.readuntil(b"\r\n\r\n")
                if not head.startswith(b"HTTP/1.1 200"):
                    raise ValueError(head.partition(b"\r\n")[0].decode(errors="replace"))
                _, _, length = head.lower().partition(b"content-length: ")
                await reader.readexactly(int(length.partition(b"\r\n")[0]))
        finally:
            self._took_s.append(time.monotonic() - self._sent_at)
            self._sent_at = 0.0


def _chunks(body: bytes) -> bytes:
    pieces = [body[at : at + _CHUNK_BYTES] for at in range(0, len(body), _CHUNK_BYTES)]
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in [*pieces, b""])


def _has_ended(stream: Stream) -> bool:
    return bool(stream.fault or stream.outcome)
