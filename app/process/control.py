"""The control channel between the parent of several server processes and each of them: lines on a socket pair.

The parent writes `accept NAME…` (accept connections from these listeners and no others) and `retire` (another
process has taken over). The child writes `ready` (it accepts connections), `drained` (its streams have ended and it
accepts none) and `failed TEXT` (why it ends). SIGTERM stops a child.
"""

import asyncio
import os
import signal
import socket
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Self

from app.process.children import ending_with_parent
from app.process.sockets import METRICS
from streams.wire.codec import dumps, loads

if TYPE_CHECKING:  # it imports aiohttp, which the parent does without
    from app.process.listeners import Listeners


@dataclass(frozen=True, slots=True)
class Inherited:
    """The file descriptors that a child inherits. `slot` names the listener that is its own."""

    slot: str
    listeners: dict[str, list[int]]
    channel: int

    @classmethod
    def from_argument(cls, argument: str) -> Self:
        return cls(**loads(argument))

    def as_argument(self) -> str:
        return dumps(asdict(self)).decode()

    @property
    def own(self) -> tuple[str, ...]:
        """The listeners that the child accepts from until the parent names others."""
        return (self.slot, METRICS)

    def report_fault(self, text: str) -> None:
        """Send the parent the reason why this process ends."""
        os.write(self.channel, f"failed {' '.join(text.split())}\n".encode())

    def sockets(self) -> dict[str, list[socket.socket]]:
        return {name: [_listener(each) for each in numbers] for name, numbers in self.listeners.items()}


class Orders:
    """The requests that a server process has received: to stop, or to retire because another process took over."""

    def __init__(self) -> None:
        self.stop = asyncio.Event()
        self.any = asyncio.Event()
        self._signals = 0

    def obey_signals(self) -> None:
        """Stop on the first SIGTERM or SIGINT, and end at once on the second."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._signalled, number)

    def request_stop(self) -> None:
        self.stop.set()
        self.any.set()

    def _signalled(self, number: int) -> None:
        self._signals += 1
        if self._signals > 1:
            os._exit(128 + number)
        self.request_stop()


@dataclass(frozen=True, slots=True)
class ParentChannel:
    """A child's end of the control channel."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    def send(self, line: str) -> None:
        _write_line(self.writer, line)

    async def follow(self, listeners: "Listeners", orders: Orders) -> None:
        """Carry out the parent's orders. If the parent has ended, the child stops."""
        async for line in _lines(self.reader):
            match line.split():
                case ["accept", *names]:
                    await listeners.accept_from(names)
                case ["retire"]:
                    await listeners.accept_from(())
                    orders.any.set()
        orders.request_stop()


@asynccontextmanager
async def parent_channel(inherited: Inherited) -> AsyncIterator[ParentChannel]:
    reader, writer = await asyncio.open_unix_connection(sock=socket.socket(fileno=os.dup(inherited.channel)))
    with closing(writer):
        yield ParentChannel(reader, writer)


@dataclass(eq=False, slots=True)
class Child:
    """The parent's end: a child process and the state that it has reported."""

    process: Process
    inherited: Inherited
    writer: asyncio.StreamWriter
    reader: asyncio.StreamReader
    accepts_from: tuple[str, ...]
    """The listeners that the last order named."""
    ready: bool = False
    drained: bool = False
    retiring: bool = False
    fault: str = ""
    """Why it ended, as it reported itself."""
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once the child is ready or has ended."""

    def send(self, number: int) -> None:
        if self.process.returncode is None:
            self.process.send_signal(number)

    def accept_from(self, names: Collection[str]) -> None:
        """Order it to accept connections from these listeners and no others."""
        if self.accepts_from != (wanted := tuple(names)):
            self.accepts_from = wanted
            _write_line(self.writer, " ".join(("accept", *wanted)))

    def retire(self) -> None:
        """Order it to accept no connection, and to end once it has served those it has."""
        self.retiring = True
        _write_line(self.writer, "retire")

    async def said(self) -> AsyncIterator[None]:
        """Record its reports until it has ended. Yields after each."""
        async for line in _lines(self.reader):
            if line == "ready":
                self.ready = True
                self.changed.set()
            elif line == "drained":
                self.drained = True
            elif line.startswith("failed "):
                self.fault = line.removeprefix("failed ")
            yield
        await self.process.wait()
        self.writer.close()
        self.changed.set()


async def start_child(
    slot: str, listeners: Mapping[str, Sequence[socket.socket]], *, environment: Mapping[str, str]
) -> Child:
    """Start a server process that inherits `listeners`; it gets SIGTERM when this process ends."""
    ours, theirs = socket.socketpair()
    with closing(theirs):
        numbers = {name: [each.fileno() for each in sockets] for name, sockets in listeners.items()}
        inherited = Inherited(slot, numbers, theirs.fileno())
        try:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "app", "serve", "--one-of-several", inherited.as_argument()),
                env=environment,
                pass_fds=[*(each for several in numbers.values() for each in several), theirs.fileno()],
                start_new_session=True,  # Ctrl-C reaches it through this parent, once
                preexec_fn=ending_with_parent(signal.SIGTERM),
            )
        except OSError:
            ours.close()
            raise
    reader, writer = await asyncio.open_unix_connection(sock=ours)
    return Child(process, inherited, writer, reader, accepts_from=inherited.own)


def _listener(number: int) -> socket.socket:
    """An inherited socket, set not to block: making a duplicate could set it to block, in all processes."""
    inherited = socket.socket(fileno=number)
    inherited.settimeout(0)
    return inherited


async def _lines(reader: asyncio.StreamReader) -> AsyncIterator[str]:
    """Its lines to the end; an end that is broken is an end."""
    try:
        while line := await reader.readline():
            yield line.decode().rstrip()
    except ConnectionError:
        return


def _write_line(writer: asyncio.StreamWriter, line: str) -> None:
    """Write a line, unless nobody is left to read it."""
    if not writer.is_closing():
        writer.write(f"{line}\n".encode())
