"""A small suite of tests in a folder of its own, with make targets that run it."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.code.source_files import ROOT

MAKEFILE = """
test:
	@{python} -m pytest -n 2 --dist loadgroup $(ARGS)

test-browser:
	@{python} -m pytest second $(ARGS)
"""
INI = """
[pytest]
addopts = -q -p no:cacheprovider -p xdist.plugin
testpaths = first
"""
CONFTEST = '''
import os
from pathlib import Path

import pytest
from _pytest.nodeid import NodeId

from tests.chance.scheduling import Scheduling


def pytest_xdist_make_scheduler(config, log):
    return Scheduling(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(items):
    yield
    for item in items:
        if with_group := getattr(item, "_nodeid", ""):
            item._id = NodeId.parse(with_group)


def first_time(name):
    """Return whether this is the first call with a name in all processes."""
    try:
        (Path(__file__).parent / f"{name}.left").touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


@pytest.fixture
def once():
    return first_time
'''
WITHIN_S = 120


@dataclass(frozen=True)
class Ended:
    code: int
    output: str

    @property
    def last_line(self) -> str:
        return self.output.rstrip().splitlines()[-1]


class Suite:
    """A suite of two targets: `test` runs the folder `first` with xdist, and `test-browser` the folder `second`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.summary = folder / "build" / "summary"
        (folder / "Makefile").write_text(MAKEFILE.format(python=sys.executable))
        (folder / "pytest.ini").write_text(INI)
        (folder / "conftest.py").write_text(CONFTEST)
        self.write("first/test_passes.py", "def test_passes(): pass")
        self.write("second/test_passes_too.py", "def test_passes(): pass")

    def write(self, name: str, *parts: str) -> None:
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("import os, signal, pytest\n" + "\n".join(parts) + "\n")

    def make(self, target: str) -> Ended:
        return self._run("make", target)

    def judge(self, *targets: str) -> Ended:
        summary = ("--summary", str(self.summary))
        return self._run(sys.executable, "-m", "tests.chance.unsteady", *summary, *targets)

    def busy(self, *options: str, target: str = "test") -> Ended:
        return self._run(*self.busy_command(*options, target=target))

    def busy_command(self, *options: str, target: str = "test") -> list[str]:
        return [sys.executable, "-m", "tests.chance.busy", *options, target]

    @property
    def place(self) -> dict[str, Any]:
        """Where a command of the suite runs."""
        environment = {
            "PATH": os.environ["PATH"],  # noqa: TID251 - it is handed on
            "PYTHONPATH": str(ROOT),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        }
        return {"cwd": self.folder, "env": environment}

    def _run(self, *command: str) -> Ended:
        ended = subprocess.run(
            command,
            **self.place,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=WITHIN_S,
            check=False,
        )
        return Ended(ended.returncode, ended.stdout)
