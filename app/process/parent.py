"""The parent of several server processes on one port: starts, restarts and replaces them.

The parent owns all listening sockets, so connections that wait to be accepted are not reset when a process ends. A
slot holds the sockets of one process and outlives it: a public socket (the kernel distributes new connections among
those of all slots, by SO_REUSEPORT) and one for `/metrics` and `/readyz` of that process.

SIGHUP replaces the processes one at a time: a successor takes over the slot once it is ready, and the old process
retires. SIGTERM and SIGINT are passed on to all children, and the parent ends after the last of them.
"""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

import structlog

from app.environment import SettingsError
from app.observing import logs
from app.process.control import Child, max_retiring_s, start_child
from app.process.sockets import METRICS, check_port, listening_sockets
from app.settings import Settings

log = structlog.get_logger()

_READY_S = 60
_STABLE_S = 10
"""A child that has run for longer is restarted without a delay when it ends."""
_FIRST_DELAY_S = 0.2
_MAX_DELAY_S = 5.0
_MAX_KILLS = 6
"""A slot is given up after this many of its first children were killed. The delays until then are 6 s in total."""
_OVERDUE_S = 30
"""How long after the drain time an ending child may still run. Its last writes take up to 15 s."""
_LAST_PORT = 65_535


async def supervise_processes(settings: Settings) -> int:
    """Run `settings.processes` children until SIGTERM or SIGINT, and return the exit code."""
    logs.configure(level=settings.log_level, process=f"parent-{os.getpid()}")
    with _open_slots(settings) as slots:
        return await _Parent(slots, drain_timeout_s=settings.drain_timeout_s).run()


@dataclass(eq=False, slots=True)
class _Slot:
    """The sockets of one process, and the child that serves them."""

    number: int
    public: list[socket.socket]
    metrics: list[socket.socket]
    child: Child | None = None
    began: float = 0.0
    """When `child` was started, in the event loop's time."""
    was_ready: bool = False
    """Whether a child was ever ready in this slot. If not, a child that ends indicates a broken deployment."""
    kills: int = 0
    """How many children of this slot were killed before one was ready, for example because memory ran out."""
    changing: asyncio.Lock = field(default_factory=asyncio.Lock)
    vacant: asyncio.Event = field(default_factory=asyncio.Event)
    """Set while the slot has no child."""
    retired: asyncio.Event = field(default_factory=asyncio.Event)
    """Set unless a replaced child of this slot is still running."""

    def __post_init__(self) -> None:
        self.vacant.set()
        self.retired.set()

    @property
    def name(self) -> str:
        return str(self.number)

    @property
    def metrics_port(self) -> int:
        port: int = self.metrics[0].getsockname()[1]
        return port


class _NotStarted(NamedTuple):
    """Why a child was not ready, and the exit code of the parent if no child of its slot ever was."""

    reason: str
    code: int = 1
    killed: bool = False
    """Whether it was killed by another program, which may not happen again."""


@contextmanager
def _open_slots(settings: Settings) -> Iterator[list[_Slot]]:
    base = settings.metrics_port
    if base is not None and base + settings.processes - 1 > _LAST_PORT:
        raise SettingsError(
            f"parley: PARLEY_METRICS_PORT must be at most {_LAST_PORT + 1 - settings.processes}:"
            f" the {settings.processes} processes use consecutive ports"
        )
    check_port(settings.host, settings.port)
    with ExitStack() as stack:
        slots = []
        for number in range(settings.processes):
            public = listening_sockets(settings.host, settings.port, variable="PORT", shared=True)
            metrics = listening_sockets(
                settings.metrics_host, 0 if base is None else base + number, variable="PARLEY_METRICS_PORT"
            )
            for sock in (*public, *metrics):
                stack.enter_context(sock)
            slots.append(_Slot(number, public, metrics))
        yield slots


class _Parent:
    def __init__(self, slots: list[_Slot], *, drain_timeout_s: float) -> None:
        self._slots = slots
        self._overdue_s = max_retiring_s(drain_timeout_s) + drain_timeout_s + _OVERDUE_S
        self._children: set[Child] = set()
        """All running children: those that are starting, serving or retiring."""
        self._tasks = asyncio.TaskGroup()
        self._stopping = asyncio.Event()
        self._replace_requested = asyncio.Event()
        self._code = 0

    async def run(self) -> int:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop)
        loop.add_signal_handler(signal.SIGHUP, self._replace_requested.set)
        async with self._tasks:
            for slot in self._slots:
                self._tasks.create_task(self._keep_filled(slot))
            self._tasks.create_task(self._replace_on_request())
        log.info("processes.stopped")
        return self._code

    def _stop(self) -> None:
        """Have the children drain, or end them immediately if they already drain."""
        number = signal.SIGKILL if self._stopping.is_set() else signal.SIGTERM
        for event in (self._stopping, self._replace_requested, *(slot.vacant for slot in self._slots)):
            event.set()
        for child in self._children:
            child.send(number)
            self._tasks.create_task(self._kill_overdue(child))

    async def _kill_overdue(self, child: Child) -> None:
        """Wait for an ending child, and kill it if it hangs, because it would block its slot and the stop."""
        try:
            async with asyncio.timeout(self._overdue_s):
                await child.ended.wait()
        except TimeoutError:
            log.error("process.killed", pid=child.process.pid, reason=f"still running after {self._overdue_s:g} s")
            child.send(signal.SIGKILL)

    async def _keep_filled(self, slot: _Slot) -> None:
        """Start a child whenever the slot is vacant, with a growing delay while children fail early."""
        clock = asyncio.get_running_loop().time
        delay_s = 0.0
        while True:
            await slot.vacant.wait()
            await self._pause(delay_s)
            async with slot.changing:
                if self._stopping.is_set():
                    return
                if slot.child is None:
                    slot.began = clock()
                    await self._fill(slot)
            await slot.vacant.wait()
            delay_s = (
                0.0 if clock() - slot.began > _STABLE_S else min(max(_FIRST_DELAY_S, delay_s * 2), _MAX_DELAY_S)
            )

    async def _fill(self, slot: _Slot) -> None:
        started = await self._start_child(slot)
        if isinstance(started, Child):
            self._take_over(slot, started)
        elif self._stopping.is_set():
            return
        elif slot.was_ready or self._may_start_again(slot, started):
            log.error("process.not_started", number=slot.number, reason=started.reason)
        else:
            others = f", as did the {slot.kills - 1} before it" if started.killed else ""
            sys.stderr.write(f"parley: {started.reason}{others}\n")
            self._code = started.code
            self._stop()

    def _may_start_again(self, slot: _Slot, started: _NotStarted) -> bool:
        """Return whether the first child of a slot is started again. One that exits with an error is not."""
        slot.kills += started.killed
        return started.killed and slot.kills < _MAX_KILLS

    async def _start_child(self, slot: _Slot) -> Child | _NotStarted:
        """Start a child and wait until it is ready."""
        try:
            child = await start_child(
                slot.name,
                {other.name: other.public for other in self._slots} | {METRICS: slot.metrics},
                environment=os.environ,  # noqa: TID251 - passed on unchanged
            )
        except OSError as error:
            return _NotStarted(f"cannot start a process: {error.strerror}")
        log.info("process.started", number=slot.number, pid=child.process.pid, metrics_port=slot.metrics_port)
        self._children.add(child)
        self._tasks.create_task(self._follow(slot, child))
        if self._stopping.is_set():
            child.send(signal.SIGTERM)
            self._tasks.create_task(self._kill_overdue(child))
        try:
            async with asyncio.timeout(_READY_S):
                await child.changed.wait()
        except TimeoutError:
            child.send(signal.SIGKILL)
            return _NotStarted(f"process {child.process.pid} was not ready within {_READY_S} s")
        if (code := child.process.returncode) is None:
            log.info("process.ready", number=slot.number, pid=child.process.pid)
            return child
        if child.fault:
            return _NotStarted(child.fault, code)
        manner = f"by {signal.Signals(-code).name}" if code < 0 else f"with code {code}"
        reason = f"process {child.process.pid} ended {manner} before it was ready"
        return _NotStarted(reason, killed=code == -signal.SIGKILL)

    async def _follow(self, slot: _Slot, child: Child) -> None:
        """Process the child's messages until it has ended."""
        async for _ in child.messages():
            self._assign_listeners()
        self._children.discard(child)
        if child is slot.child:
            slot.child = None
            slot.vacant.set()
            self._assign_listeners()
            if not self._stopping.is_set():
                code = child.process.returncode
                log.error("process.died", number=slot.number, pid=child.process.pid, code=code, reason=child.fault)
        elif child.retiring:
            slot.retired.set()

    def _take_over(self, slot: _Slot, child: Child) -> None:
        """Assign `child` to the slot and retire the child that it replaces, if any."""
        previous, slot.child, slot.was_ready = slot.child, child, True
        if not self._stopping.is_set():
            slot.vacant.clear()
        if previous is not None:
            slot.retired.clear()
            previous.retire()
            self._tasks.create_task(self._kill_overdue(previous))
        self._assign_listeners()

    def _assign_listeners(self) -> None:
        """Tell each child which slots to accept from: its own, and those whose child has ended or drained."""
        serving = {slot: slot.child for slot in self._slots if slot.child is not None and not slot.child.drained}
        shared = [slot.name for slot in self._slots if slot not in serving]
        for slot, child in serving.items():
            child.accept_from((slot.name, METRICS, *shared))

    async def _pause(self, delay_s: float) -> None:
        try:
            async with asyncio.timeout(delay_s):
                await self._stopping.wait()
        except TimeoutError:
            pass

    async def _replace_on_request(self) -> None:
        """Replace all processes whenever requested. Requests during a round cause one further round."""
        while True:
            await self._replace_requested.wait()
            self._replace_requested.clear()
            if self._stopping.is_set():
                return
            log.info("processes.replacing")
            for slot in self._slots:
                if not await self._replace(slot):
                    break

    async def _replace(self, slot: _Slot) -> bool:
        """Replace the child of a slot. The old child continues if the new one cannot start.

        Waits until the previously replaced child has ended, so that at most twice the number of processes use the
        stores.
        """
        await slot.retired.wait()
        async with slot.changing:
            if self._stopping.is_set():
                return False
            if slot.child is None:
                return True  # _keep_filled starts a new child anyway.
            began = asyncio.get_running_loop().time()
            started = await self._start_child(slot)
            if isinstance(started, _NotStarted):
                if not self._stopping.is_set():
                    log.error("process.not_replaced", number=slot.number, reason=started.reason)
                return False
            slot.began = began
            self._take_over(slot, started)
            return True
