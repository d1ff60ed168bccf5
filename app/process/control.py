"""The control channel between a parent and each of its server processes: lines of text on a socket pair.

The parent writes `accept NAME…` (accept connections from these listeners only), `retire` (another process has
taken over) and `close` (the response to `drained`). The child writes `ready` (it accepts connections), `drained`
(its streams have ended, and it stops accepting connections) and `failed TEXT` (why it ends). SIGTERM stops a child.
"""

import asyncio
import os
import signal
import socket
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Self

import structlog

from app.process.children import ending_with_parent
from app.process.sockets import METRICS
from streams.wire.codec import dumps, loads

log = structlog.get_logger()

RETIRING_S = 20
"""Longer than `deploy/nginx.conf` keeps an idle connection open."""

if TYPE_CHECKING:  # It imports aiohttp, which the parent does not need.
    from app.process.listeners import Listeners


def max_retiring_s(timeout_s: float) -> float:
    """Return for how long a retiring process with the drain timeout `timeout_s` accepts new streams."""
    return min(RETIRING_S, timeout_s / 2)


@dataclass(frozen=True, slots=True)
class Inherited:
    """The file descriptors that a child inherits. `slot` is the name of the child's own public listener."""

    slot: str
    listeners: dict[str, list[int]]
    channel: int

    @classmethod
    def from_argument(cls, argument: str) -> Self:
        return cls(**loads(argument))

    def as_argument(self) -> str:
        return dumps(asdict(self)).decode()

    @property
    def own_listeners(self) -> tuple[str, ...]:
        """Names of the listeners from which the child accepts connections until the parent changes them."""
        return (self.slot, METRICS)

    def report_failure(self, text: str) -> None:
        """Send the parent the reason why this process ends."""
        os.write(self.channel, f"failed {' '.join(text.split())}\n".encode())

    def sockets(self) -> dict[str, list[socket.socket]]:
        return {name: [_listener(number) for number in numbers] for name, numbers in self.listeners.items()}


class ShutdownRequests:
    """Requests to a server process to stop, or to retire because another process has taken over."""

    def __init__(self) -> None:
        self.stop = asyncio.Event()
        """Set when the process must stop."""
        self.any = asyncio.Event()
        """Set when the process must stop or retire."""
        self._has_parent = False

    def handle_signals(self, *, has_parent: bool) -> None:
        """Stop on SIGTERM or SIGINT, and exit immediately on the second of them. SIGHUP changes nothing.

        `has_parent`: a parent process sends these signals, and only the first one counts. When the parent dies, the
        kernel sends SIGTERM several times, once for each thread of either process. To end this process immediately,
        the parent kills it.
        """
        self._has_parent = has_parent
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._on_signal, number)
        loop.add_signal_handler(signal.SIGHUP, self._log_hangup)

    def request_stop(self) -> None:
        self.stop.set()
        self.any.set()

    def _on_signal(self, number: int) -> None:
        if self.stop.is_set() and not self._has_parent:
            os._exit(128 + number)
        self.request_stop()

    def _log_hangup(self) -> None:
        if self._has_parent:
            reason = "send SIGHUP to the parent process"
        else:
            reason = "with PARLEY_PROCESSES=1 no other process can take over: restart the server instead"
        log.warning("server.not_replaced", reason=reason)


@dataclass(frozen=True, slots=True)
class ParentChannel:
    """A child's end of the control channel."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    def send(self, line: str) -> None:
        _write_line(self.writer, line)

    async def follow(self, listeners: "Listeners", requests: ShutdownRequests) -> None:
        """Execute the parent's commands until `close`. If the parent ends, stop this process and stop listening.

        A new parent can then listen on the same ports while the streams of this process continue.
        """
        async for line in _lines(self.reader):
            match line.split():
                case ["accept", *names]:
                    await listeners.accept_from(names)
                case ["retire"]:
                    await listeners.accept_from(())
                    requests.any.set()
                case ["close"]:
                    return
        log.warning("server.parent_ended", consequence="drains its streams, and listens no more")
        requests.request_stop()
        await listeners.accept_waiting_and_close()


@asynccontextmanager
async def parent_channel(inherited: Inherited) -> AsyncIterator[ParentChannel]:
    """Open the child's end of the control channel for the duration of the block."""
    reader, writer = await asyncio.open_unix_connection(sock=socket.socket(fileno=os.dup(inherited.channel)))
    with closing(writer):
        yield ParentChannel(reader, writer)


@dataclass(eq=False, slots=True)
class Child:
    """A child process as seen by the parent: the parent's end of the control channel, and the child's state."""

    process: Process
    inherited: Inherited
    writer: asyncio.StreamWriter
    reader: asyncio.StreamReader
    accepts_from: tuple[str, ...]
    """The listeners from which it currently accepts connections."""
    ready: bool = False
    drained: bool = False
    retiring: bool = False
    fault: str = ""
    """The reason why it ends, if it has reported one."""
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once the child is ready or has ended."""
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    def send(self, number: int) -> None:
        if self.process.returncode is None:
            self.process.send_signal(number)

    def accept_from(self, names: Collection[str]) -> None:
        """Have the child accept connections from these listeners and no others."""
        if self.accepts_from != (listeners := tuple(names)):
            self.accepts_from = listeners
            _write_line(self.writer, " ".join(("accept", *listeners)))

    def retire(self) -> None:
        """Have the child accept no more connections and end once its existing connections are served."""
        self.retiring = True
        _write_line(self.writer, "retire")

    async def messages(self) -> AsyncIterator[None]:
        """Process the child's messages until it has ended, and yield after each of them."""
        async for line in _lines(self.reader):
            if line == "ready":
                self.ready = True
                self.changed.set()
            elif line == "drained":
                self.drained = True
                _write_line(self.writer, "close")
            elif line.startswith("failed "):
                self.fault = line.removeprefix("failed ")
            yield
        await self.process.wait()
        self.writer.close()
        self.changed.set()
        self.ended.set()


async def start_child(
    slot: str, listeners: Mapping[str, Sequence[socket.socket]], *, environment: Mapping[str, str]
) -> Child:
    """Start a server process that inherits `listeners`. It receives SIGTERM when this process ends."""
    parent_end, child_end = socket.socketpair()
    with closing(child_end):
        numbers = {name: [listener.fileno() for listener in sockets] for name, sockets in listeners.items()}
        inherited = Inherited(slot, numbers, child_end.fileno())
        try:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "app", "serve", "--one-of-several", inherited.as_argument()),
                env=environment,
                pass_fds=[*(number for group in numbers.values() for number in group), child_end.fileno()],
                start_new_session=True,  # Ctrl-C must reach the child only once, through this parent.
                preexec_fn=partial(_prepare, ending_with_parent(signal.SIGTERM)),
            )
        except OSError:
            parent_end.close()
            raise
    reader, writer = await asyncio.open_unix_connection(sock=parent_end)
    return Child(process, inherited, writer, reader, accepts_from=inherited.own_listeners)


def _prepare(bind_to_parent: Callable[[], None] | None) -> None:
    """Prepare the process of a child before it executes Python."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # Otherwise, SIGHUP would end a child that does not handle it yet.
    if bind_to_parent is not None:
        bind_to_parent()


def _listener(number: int) -> socket.socket:
    """Return an inherited socket in non-blocking mode.

    The mode is shared by all processes, and duplicating a socket that Python considers blocking would make it
    blocking.
    """
    inherited = socket.socket(fileno=number)
    inherited.settimeout(0)
    return inherited


async def _lines(reader: asyncio.StreamReader) -> AsyncIterator[str]:
    """Yield lines until the connection is closed or lost."""
    try:
        while line := await reader.readline():
            yield line.decode().rstrip()
    except ConnectionError:
        return


def _write_line(writer: asyncio.StreamWriter, line: str) -> None:
    """Write a line, unless the connection is closed."""
    if not writer.is_closing():
        writer.write(f"{line}\n".encode())
