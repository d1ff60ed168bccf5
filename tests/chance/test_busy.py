"""The runs of the tests with one core kept busy."""

import asyncio
import os
import signal
from collections.abc import Callable
from contextlib import suppress

import psutil
import pytest

from tests.chance.suite import Suite
from tests.waiting import until

WAITS = "def test_waits(once):\n    once('begun')\n    signal.pause()"


@pytest.mark.soak
def test_failures_are_counted(suite: Suite) -> None:
    suite.write(
        "first/test_failures.py",
        "def test_always(): assert False",
        "def test_once(once): assert not once('once')",
    )
    ended = suite.busy("--runs", "2")
    assert ended.code == 1, ended.output
    assert ended.output.rstrip().splitlines()[-3:] == [
        "failed in 2 of 2: first/test_failures.py::test_always",
        "failed in 1 of 2: first/test_failures.py::test_once",
        "2 tests failed in 2 runs with one core kept busy",
    ]


@pytest.mark.soak
def test_arguments_are_passed_to_each_run(suite: Suite) -> None:
    suite.write("first/test_failures.py", "def test_always(): assert False")
    ended = suite.busy("--runs", "1", "--arguments=-k 'passes or absent' --junitxml='a $b.xml'")
    assert ended.code == 0, ended.output
    assert ended.last_line == "0 tests failed in 1 runs with one core kept busy"
    assert (suite.folder / "a $b.xml").exists()


@pytest.mark.soak
def test_a_run_that_is_not_complete_is_counted(suite: Suite) -> None:
    suite.write("first/test_broken.py", "assert False")
    ended = suite.busy("--runs", "1")
    assert ended.code == 1, ended.output
    assert "failed in 1 of 1: make test: no tests could be read from first/test_broken.py" in ended.output


@pytest.mark.parametrize(
    "end",
    [
        pytest.param(lambda pid: os.killpg(pid, signal.SIGINT), id="interrupted", marks=pytest.mark.soak),
        pytest.param(lambda pid: os.kill(pid, signal.SIGKILL), id="killed"),
    ],
)
async def test_the_busy_process_ends_with_the_runs(suite: Suite, end: Callable[[int], None]) -> None:
    suite.write("first/test_waits.py", WAITS)
    process = await asyncio.create_subprocess_exec(*suite.busy_command(), start_new_session=True, **suite.place)
    try:
        await until((suite.folder / "begun.left").exists)
        children = psutil.Process(process.pid).children()
        [busy] = [child for child in children if child.cmdline()[1] == "-c"]
        assert not has_ended(busy)
        end(process.pid)
        await until(lambda: has_ended(busy))
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


def has_ended(process: psutil.Process) -> bool:
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
