"""A child process for a library that blocks all threads. Calls have a time limit; a lost process is restarted."""

import time
from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import Any

import structlog

log = structlog.get_logger()

_POLL_EVERY_S = 0.05
_START_S = 60
_END_S = 2


class WorkerLate(Exception):
    """The call exceeded its time limit."""


class WorkerLost(Exception):
    """The process died twice during this call."""


class WorkerFailed(Exception):
    """The call raised an exception in the process, which continues to run."""


Serve = Callable[[Connection], None]
"""The main function of the process.

It sends pairs of an error, or `None`, and a result: one pair when it is ready, and one for each call. It returns
when the connection is closed.
"""


class Worker:
    """A process that runs `serve`. The first call starts it. Only one thread may call it at a time."""

    def __init__(self, serve: Serve, *, name: str) -> None:
        self._serve = serve
        self._name = name
        self._running: tuple[SpawnProcess, Connection] | None = None

    @property
    def pid(self) -> int | None:
        return self._running[0].pid if self._running else None

    def start(self) -> Connection:
        """Start the process if necessary and return its connection. Raise an exception if it fails to load."""
        if self._running is not None:
            return self._running[1]
        context = get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=self._serve, args=(theirs,), name=self._name, daemon=True)
        process.start()
        theirs.close()
        self._running = process, ours
        try:
            self._receive(ours, _START_S, lambda: True)
        except BaseException:
            self.stop()
            raise
        return ours

    def call(self, request: Any, *, limit_s: float, is_wanted: Callable[[], bool]) -> Any:
        """Send a call and return its result, or `None` if `is_wanted` returns false before.

        A process that dies is restarted once. A process that exceeds `limit_s` or is no longer wanted is killed,
        because it cannot be interrupted.
        """
        for _ in range(2):
            try:
                connection = self.start()
                connection.send(request)
                return self._receive(connection, limit_s, is_wanted)
            except (EOFError, ConnectionError):
                log.warning("worker.lost", worker=self._name)
                self.stop()
            except WorkerFailed:
                raise
            except BaseException:
                self.stop()
                raise
        raise WorkerLost

    def stop(self) -> None:
        """Kill the process if it runs."""
        if self._running is None:
            return
        (process, connection), self._running = self._running, None
        connection.close()
        process.kill()
        process.join(_END_S)

    def _receive(self, connection: Connection, limit_s: float, is_wanted: Callable[[], bool]) -> Any:
        deadline = time.monotonic() + limit_s
        while not connection.poll(_POLL_EVERY_S):
            if not is_wanted():
                self.stop()
                return None
            if time.monotonic() > deadline:
                raise WorkerLate
        fault, result = connection.recv()
        if fault is not None:
            raise WorkerFailed(fault)
        return result
