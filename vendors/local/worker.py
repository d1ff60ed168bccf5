"""A process beside this one, for a library that would hold all threads of this one: asked, limited, begun again."""

import time
from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import Any

import structlog

log = structlog.get_logger()

_LOOK_EVERY_S = 0.05
_START_S = 60
_END_S = 2


class WorkerLate(Exception):
    """The answer was not there in time."""


class WorkerLost(Exception):
    """The process died over this question, twice."""


class WorkerFailed(Exception):
    """What went wrong in the process, which lives on."""


Serve = Callable[[Connection], None]
"""Sends pairs of what went wrong, if anything, and the answer: one when it is ready, one for each question.

It returns when the connection ends.
"""


class Worker:
    """One process of `serve`, begun by the first question. One thread at a time asks it."""

    def __init__(self, serve: Serve, *, name: str) -> None:
        self._serve = serve
        self._name = name
        self._running: tuple[SpawnProcess, Connection] | None = None

    @property
    def pid(self) -> int | None:
        return self._running[0].pid if self._running else None

    def start(self) -> Connection:
        """The line to the process, once it has loaded what it needs; an exception tells why it has not."""
        if self._running is not None:
            return self._running[1]
        context = get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=self._serve, args=(theirs,), name=self._name, daemon=True)
        process.start()
        theirs.close()
        self._running = process, ours
        try:
            self._answer(ours, _START_S, lambda: True)
        except BaseException:
            self.stop()
            raise
        return ours

    def ask(self, question: Any, *, limit_s: float, wanted: Callable[[], bool]) -> Any:
        """The answer; none when it was no longer `wanted`. Who dies meanwhile is begun again, once.

        A process that is late, or works for nobody, is ended: it cannot be told to stop.
        """
        for _ in range(2):
            try:
                line = self.start()
                line.send(question)
                return self._answer(line, limit_s, wanted)
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
        """End the process, whatever it does."""
        if self._running is None:
            return
        (process, line), self._running = self._running, None
        line.close()
        process.kill()
        process.join(_END_S)

    def _answer(self, line: Connection, limit_s: float, wanted: Callable[[], bool]) -> Any:
        until = time.monotonic() + limit_s
        while not line.poll(_LOOK_EVERY_S):
            if not wanted():
                self.stop()
                return None
            if time.monotonic() > until:
                raise WorkerLate
        fault, answer = line.recv()
        if fault is not None:
            raise WorkerFailed(fault)
        return answer
