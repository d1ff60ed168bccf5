"""Several server processes on one port: one parent that starts them, starts them again, and replaces them.

The parent owns all listening sockets, so no connection that waits for a process is reset when that process ends. A
slot holds the sockets of one process and outlives it: a public one, among which the kernel spreads new connections
(SO_REUSEPORT), and one for `/metrics` and `/readyz` of that process alone.

SIGHUP replaces the processes one at a time: a successor takes over the slot once it is ready, and the old process
retires. SIGTERM and SIGINT are passed on, and the parent ends when the last child has.
"""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

import structlog

from app import logs
from app.process.control import Child, start_child
from app.process.sockets import METRICS, check_port, listening_sockets
from app.settings import Settings, SettingsError

log = structlog.get_logger()

_READY_S = 60
_SOUND_S = 10
"""A child that lived as long did not fail at its start."""
_FIRST_DELAY_S = 0.2
_LONGEST_DELAY_S = 5.0
_LAST_PORT = 65_535


async def supervise(settings: Settings) -> int:
    """Run `settings.processes` children until told to stop, and return the exit code."""
    logs.configure(level=settings.log_level)
    with _open_slots(settings) as slots:
        return await _Parent(slots).run()


@dataclass(eq=False, slots=True)
class _Slot:
    """The sockets of one process, and the child that serves them."""

    number: int
    public: list[socket.socket]
    metrics: list[socket.socket]
    child: Child | None = None
    began: float = 0.0
    """When `child` was started, on the loop's clock."""
    was_ready: bool = False
    """Whether any child was ever ready here: before that a child that ends is a fault of the deployment."""
    changing: asyncio.Lock = field(default_factory=asyncio.Lock)
    vacant: asyncio.Event = field(default_factory=asyncio.Event)
    """Set while there is no child."""
    retired: asyncio.Event = field(default_factory=asyncio.Event)
    """Set while no child that was replaced still runs."""

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


@contextmanager
def _open_slots(settings: Settings) -> Iterator[list[_Slot]]:
    base = settings.metrics_port
    if base is not None and base + settings.processes - 1 > _LAST_PORT:
        raise SettingsError(
            f"parley: PARLEY_METRICS_PORT must be at most {_LAST_PORT + 1 - settings.processes}:"
            f" each of the {settings.processes} processes has the next port"
        )
    check_port(settings.host, settings.port)
    with ExitStack() as stack:
        slots = []
        for number in range(settings.processes):
            public = listening_sockets(settings.host, settings.port, variable="PORT", shared=True)
            metrics = listening_sockets(
                "127.0.0.1", 0 if base is None else base + number, variable="PARLEY_METRICS_PORT"
            )
            for each in (*public, *metrics):
                stack.enter_context(each)
            slots.append(_Slot(number, public, metrics))
        yield slots


class _Parent:
    def __init__(self, slots: list[_Slot]) -> None:
        self._slots = slots
        self._children: set[Child] = set()
        """All that run: those that start, serve or retire."""
        self._tasks = asyncio.TaskGroup()
        self._stopping = asyncio.Event()
        self._told_to_replace = asyncio.Event()
        self._code = 0

    async def run(self) -> int:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop, number)
        loop.add_signal_handler(signal.SIGHUP, self._told_to_replace.set)
        async with self._tasks:
            for slot in self._slots:
                self._tasks.create_task(self._keep(slot))
            self._tasks.create_task(self._replace_when_told())
        log.info("processes.stopped")
        return self._code

    def _stop(self, number: int) -> None:
        """Pass the signal on. The first has each child end its streams, another ends all at once."""
        for event in (self._stopping, self._told_to_replace, *(slot.vacant for slot in self._slots)):
            event.set()
        for child in self._children:
            child.send(number)

    async def _keep(self, slot: _Slot) -> None:
        """Have one child after another serve the slot."""
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
                0.0 if clock() - slot.began > _SOUND_S else min(max(_FIRST_DELAY_S, delay_s * 2), _LONGEST_DELAY_S)
            )

    async def _fill(self, slot: _Slot) -> None:
        child, fault = await self._started(slot)
        if child is not None:
            self._take_over(slot, child)
        elif self._stopping.is_set():
            return
        elif slot.was_ready:
            log.error("process.not_started", number=slot.number, reason=fault)
        else:
            sys.stderr.write(f"parley: {fault}\n")
            self._code = 1
            self._stop(signal.SIGTERM)

    async def _started(self, slot: _Slot) -> tuple[Child | None, str]:
        """A new child of the slot once it is ready, or none and why it is not."""
        try:
            child = await start_child(
                slot.name,
                {each.name: each.public for each in self._slots} | {METRICS: slot.metrics},
                environment=os.environ,  # noqa: TID251 - handed on whole
            )
        except OSError as error:
            return None, f"cannot start a process: {error.strerror}"
        log.info("process.started", number=slot.number, pid=child.process.pid, metrics_port=slot.metrics_port)
        self._children.add(child)
        self._tasks.create_task(self._follow(slot, child))
        if self._stopping.is_set():
            child.send(signal.SIGTERM)
        try:
            async with asyncio.timeout(_READY_S):
                await child.changed.wait()
        except TimeoutError:
            child.send(signal.SIGKILL)
            return None, f"process {child.process.pid} was not ready within {_READY_S} s"
        if (code := child.process.returncode) is None:
            log.info("process.ready", number=slot.number, pid=child.process.pid)
            return child, ""
        how = f"by {signal.Signals(-code).name}" if code < 0 else f"with code {code}"
        return None, child.fault or f"process {child.process.pid} ended {how} before it was ready"

    async def _follow(self, slot: _Slot, child: Child) -> None:
        """Follow what the child says until it has ended."""
        async for _ in child.said():
            self._share_out()
        self._children.discard(child)
        if child is slot.child:
            slot.child = None
            slot.vacant.set()
            self._share_out()
            if not self._stopping.is_set():
                code = child.process.returncode
                log.error("process.died", number=slot.number, pid=child.process.pid, code=code, reason=child.fault)
        elif child.retiring:
            slot.retired.set()

    def _take_over(self, slot: _Slot, child: Child) -> None:
        """Have `child` serve the slot; the one before retires."""
        before, slot.child, slot.was_ready = slot.child, child, True
        if not self._stopping.is_set():
            slot.vacant.clear()
        if before is not None:
            slot.retired.clear()
            before.retire()
        self._share_out()

    def _share_out(self) -> None:
        """Say who accepts from which slot: its own child, and all others where that is gone or has drained."""
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

    async def _replace_when_told(self) -> None:
        """One round after the other. Signals that come during a round are one more round."""
        while True:
            await self._told_to_replace.wait()
            self._told_to_replace.clear()
            if self._stopping.is_set():
                return
            log.info("processes.replacing")
            for slot in self._slots:
                if not await self._replaced(slot):
                    break

    async def _replaced(self, slot: _Slot) -> bool:
        """Have a new child take over the slot; the old one stays if that one cannot start.

        It waits until the one that was replaced before has ended: so the stores have at most twice the processes.
        """
        await slot.retired.wait()
        async with slot.changing:
            if self._stopping.is_set():
                return False
            if slot.child is None:
                return True  # a new one comes anyway
            began = asyncio.get_running_loop().time()
            new, fault = await self._started(slot)
            if new is None:
                if not self._stopping.is_set():
                    log.error("process.not_replaced", number=slot.number, reason=fault)
                return False
            slot.began = began
            self._take_over(slot, new)
            return True
