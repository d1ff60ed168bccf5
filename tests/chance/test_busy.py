"""The runs of the tests with one core kept busy."""

import asyncio
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from unittest.mock import Mock

import psutil
import pytest

from tests.chance import busy
from tests.chance.outcomes import Outcomes
from tests.chance.runs import Run
from tests.chance.suite import Suite
from tests.waiting import until

WAITS = "def test_waits(once):\n    once('begun')\n    signal.pause()"


def test_failed_tests_are_printed_with_their_counts(suite: Suite) -> None:
    suite.write("second/test_failures.py", "def test_always(): assert False")
    ended = suite.busy("--runs", "1", target="test-browser")
    assert ended.code == 1, ended.output
    assert ended.output.rstrip().splitlines()[-2:] == [
        "failed in 1 of 1: second/test_failures.py::test_always",
        "1 test failed in 1 run with one core kept busy",
    ]


def test_the_runs_in_which_a_test_failed_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = [
        Run(Outcomes(failures={"test_once": "", "test_always": ""}), None),
        Run(Outcomes(failures={"test_always": ""}), None),
        Run(Outcomes(), "no test ran"),
        Run(Outcomes(failures={"test_always": ""}), "the run was interrupted"),
    ]
    monkeypatch.setattr(busy, "run_target", Mock(side_effect=runs))
    count = busy.count_failures("test", "", runs=4)
    assert busy.report(count, "test", runs=4).splitlines() == [
        "failed in 3 of 4: test_always",
        "failed in 1 of 4: test_once",
        "make test not complete in 1 of 4: no test ran",
        "make test not complete in 1 of 4: the run was interrupted",
        "2 tests failed in 4 runs with one core kept busy, 2 not complete",
    ]


@pytest.mark.soak
def test_failures_of_several_runs_are_counted(suite: Suite) -> None:
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
    assert ended.last_line == "0 tests failed in 1 run with one core kept busy"
    assert (suite.folder / "a $b.xml").exists()


@pytest.mark.soak
def test_a_run_that_is_not_complete_is_counted(suite: Suite) -> None:
    suite.write("first/test_broken.py", "assert False")
    ended = suite.busy("--runs", "1")
    assert ended.code == 1, ended.output
    assert ended.output.rstrip().splitlines()[-2:] == [
        "make test not complete in 1 of 1: no tests could be read from first/test_broken.py",
        "0 tests failed in 1 run with one core kept busy, 1 not complete",
    ]


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
        [spinning] = [child for child in children if child.cmdline()[1] == "-c"]
        assert not has_ended(spinning)
        end(process.pid)
        await until(lambda: has_ended(spinning))
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


def has_ended(process: psutil.Process) -> bool:
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
