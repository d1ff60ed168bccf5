"""The files of the product that a request runs through, in the order in which their functions are first called."""

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from types import FrameType

from tests.code.source_files import ROOT

_FLOORS = {"app": 3, "actors": 2, "vendors": 1, "storage": 1, "streams": 0}
_OUTSIDE = ("tests/", "vendors/sandbox/", "vendors/local/", "deploy/")
"""What asks the server, and what answers it."""
_MACHINERY = (
    "app/http/serving/",
    "app/http/wire/",
    "app/observing/",
    "vendors/http/",
    "storage/postgres/",
    "storage/clock.py",
    "storage/availability.py",
    "streams/",
)
"""What every request uses by its contract, so that it is read once: the HTTP server and client, logs, access to the
database, and values with their encoding."""
_VALIDATION = "streams/wire/model.py"
"""A model calls the validators of its fields, which is no way back."""
_STORES = "storage/"
"""Callbacks of a store's connection also serve those who asked it before. What asks it now is in a task."""


@dataclass
class Trace:
    """Files are relative to the root of the repository."""

    files: list[str] = field(default_factory=list)
    climbs: list[tuple[str, str]] = field(default_factory=list)
    """Calls from a file to one on a higher floor."""

    @property
    def own(self) -> list[str]:
        """The files apart from the machinery of all requests."""
        return [name for name in self.files if not name.startswith(_MACHINERY)]

    def add(self, frame: FrameType, *, in_task: bool) -> None:
        name = _name(frame.f_code.co_filename)
        if name is None or frame.f_code.co_name == "<module>":
            return
        callers = list(_callers(frame))
        if any(caller.startswith(_OUTSIDE) for caller in (name, *callers)):
            return
        if not in_task and (name, *callers)[-1].startswith(_STORES):
            return
        if name not in self.files:
            self.files.append(name)
        if callers and callers[0] != _VALIDATION and _floor(callers[0]) < _floor(name):
            climb = callers[0], name
            if climb not in self.climbs:
                self.climbs.append(climb)


def _callers(frame: FrameType) -> Iterator[str]:
    """Yield the files of the repository that have called a function, the nearest first."""
    above = frame.f_back
    while above is not None:
        if (name := _name(above.f_code.co_filename)) is not None:
            yield name
        above = above.f_back


@cache
def _name(path: str) -> str | None:
    name = path.removeprefix(f"{ROOT}/")
    return None if name == path or name.startswith(".venv/") else name


def _floor(name: str) -> int:
    return _FLOORS[name.split("/", maxsplit=1)[0]]


@contextmanager
def traced() -> Iterator[Trace]:
    """Trace what is called during the block, except by tasks that run already."""
    trace, running = Trace(), asyncio.all_tasks() - {asyncio.current_task()}

    def follow(frame: FrameType, event: str, _: object) -> None:
        if event != "call":
            return
        try:
            task = asyncio.current_task()
        except RuntimeError:  # A thread has no loop.
            task = None
        if task not in running:
            trace.add(frame, in_task=task is not None)

    sys.setprofile(follow)
    try:
        yield trace
    finally:
        sys.setprofile(None)
