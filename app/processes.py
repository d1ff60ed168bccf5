"""Several server processes on one port: one parent that starts them, starts them again, and replaces them.

The kernel shares new connections out among them (SO_REUSEPORT). SIGTERM and SIGINT are passed on, and the
parent ends when the last child has. SIGHUP replaces the children one at a time, each once its successor is
ready. Child number `n` has its own `/readyz` and `/metrics` on `PARLEY_METRICS_PORT` + `n`, from 0; while one
replaces another there are more numbers than processes.
"""

import asyncio
import os
import signal
import socket
import sys
from asyncio.subprocess import Process
from contextlib import closing
from dataclasses import dataclass, field
from itertools import count

import structlog
from aiohttp import ClientError, ClientSession, ClientTimeout

from app import logs
from app.children import ending_with_parent
from app.settings import Settings, SettingsError
from streams.tasks import background

log = structlog.get_logger()

_REPLACED_S = 60
_SOUND_S = 10
"""A child that lived as long did not fail at its start."""
_FIRST_DELAY_S = 0.2
_LONGEST_DELAY_S = 5.0
_ASK_AGAIN_S = 0.1


def check_port(host: str, port: int) -> None:
    """`SettingsError` when somebody listens there already, be it with SO_REUSEPORT."""
    try:
        bound_socket(host, port, reuse=socket.SO_REUSEADDR).close()
    except OSError as error:
        raise SettingsError(
            f"parley: cannot listen on {host} port {port}: {error.strerror} (PORT chooses another)"
        ) from None


def bound_socket(host: str, port: int, *, reuse: int) -> socket.socket:
    """A socket that holds the port and does not listen."""
    family, kind, protocol, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    bound = socket.socket(family, kind, protocol)
    try:
        bound.setsockopt(socket.SOL_SOCKET, reuse, 1)
        bound.bind(address)
    except OSError:
        bound.close()
        raise
    return bound


async def supervise(settings: Settings) -> int:
    """Run `settings.processes` children until told to stop, and return the exit code."""
    logs.configure(level=settings.log_level)
    with closing(bound_socket(settings.host, settings.port, reuse=socket.SO_REUSEPORT)):
        return await _Parent(settings).run()


@dataclass(eq=False, slots=True)
class _Place:
    """Where one child lives, and the next one when it has died; `leaving`: no next one."""

    number: int
    metrics_port: int
    process: Process | None = None
    leaving: bool = False
    ready: asyncio.Event = field(default_factory=asyncio.Event)

    def send(self, number: int) -> None:
        if self.process is not None and self.process.returncode is None:
            self.process.send_signal(number)


class _Parent:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._places: dict[int, _Place] = {}
        self._tasks = asyncio.TaskGroup()
        self._stopping = asyncio.Event()
        self._told_to_replace = asyncio.Event()
        self._sound = False
        """Whether any child was ever ready: before that, the death of one is a fault that all share."""
        self._code = 0

    async def run(self) -> int:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop, number)
        loop.add_signal_handler(signal.SIGHUP, self._told_to_replace.set)
        async with background(self._replace_when_told()), self._tasks:
            for _ in range(self._settings.processes):
                self._open_place()
        log.info("processes.stopped")
        return self._code

    def _stop(self, number: int) -> None:
        self._stopping.set()
        for place in self._places.values():
            place.send(number)

    def _open_place(self) -> _Place:
        number = next(number for number in count() if number not in self._places)
        base = self._settings.metrics_port
        place = _Place(number, _free_port() if base is None else base + number)
        self._places[number] = place
        self._tasks.create_task(self._keep(place))
        return place

    async def _keep(self, place: _Place) -> None:
        """One child after another, until this place is given up."""
        clock = asyncio.get_running_loop().time
        delay_s = 0.0
        while not self._stopping.is_set() and not place.leaving:
            began = clock()
            code = await self._live(place)
            if self._stopping.is_set() or place.leaving:
                break
            log.error("process.died", number=place.number, code=code)
            if not self._sound:
                self._code = 1
                self._stop(signal.SIGTERM)
            delay_s = 0.0 if clock() - began > _SOUND_S else min(max(_FIRST_DELAY_S, delay_s * 2), _LONGEST_DELAY_S)
            await self._pause(delay_s)
        del self._places[place.number]

    async def _live(self, place: _Place) -> int:
        """The whole life of a child, to its exit code."""
        place.process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "app", "serve", "--one-of-several"),
            env={**os.environ, "PARLEY_METRICS_PORT": str(place.metrics_port)},  # noqa: TID251 - handed on whole
            start_new_session=True,  # Ctrl-C reaches it through this parent, once
            preexec_fn=ending_with_parent(signal.SIGTERM),
        )
        log.info("process.started", number=place.number, pid=place.process.pid, metrics_port=place.metrics_port)
        if self._stopping.is_set() or place.leaving:
            place.send(signal.SIGTERM)
        async with background(self._tell_when_ready(place)):
            return await place.process.wait()

    async def _tell_when_ready(self, place: _Place) -> None:
        await until_ready(f"http://127.0.0.1:{place.metrics_port}")
        self._sound = True
        place.ready.set()
        log.info("process.ready", number=place.number)

    async def _pause(self, delay_s: float) -> None:
        try:
            async with asyncio.timeout(delay_s):
                await self._stopping.wait()
        except TimeoutError:
            pass

    async def _replace_when_told(self) -> None:
        while True:
            await self._told_to_replace.wait()
            self._told_to_replace.clear()
            log.info("processes.replacing")
            for old in list(self._places.values()):
                if self._stopping.is_set() or not await self._replaced(old):
                    break

    async def _replaced(self, old: _Place) -> bool:
        """Put another child in the place of `old`, who drains meanwhile; `old` stays if that one fails."""
        new = self._open_place()
        try:
            async with asyncio.timeout(_REPLACED_S):
                await new.ready.wait()
        except TimeoutError:
            log.error("process.not_ready", number=new.number, within_s=_REPLACED_S)
            left, stays = new, False
        else:
            left, stays = old, True
        left.leaving = True
        left.send(signal.SIGTERM)
        return stays


async def until_ready(url: str) -> None:
    """Wait until `/readyz` of the server at `url` answers 200."""
    async with ClientSession(timeout=ClientTimeout(total=5), trust_env=False) as http:
        while True:
            try:
                async with http.get(f"{url}/readyz") as answer:
                    if answer.status == 200:
                        return
            except (ClientError, TimeoutError):
                pass
            await asyncio.sleep(_ASK_AGAIN_S)


def _free_port() -> int:
    with closing(bound_socket("127.0.0.1", 0, reuse=socket.SO_REUSEADDR)) as found:
        port: int = found.getsockname()[1]
        return port
