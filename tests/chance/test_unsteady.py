"""Failed tests run once more: what `python -m tests.chance.unsteady` reports, with its exit code.

Each test has a small suite and a makefile of its own.
"""

import re
from unittest.mock import Mock, call

import pytest

from tests.chance import unsteady as unsteady_runs
from tests.chance.outcomes import Outcomes
from tests.chance.runs import Run
from tests.chance.suite import Suite


def unsteady(output: str) -> list[str]:
    return sorted(re.findall(r"^unsteady: (.+)$", output, re.MULTILINE))


def failed(output: str) -> list[str]:
    return sorted(re.findall(r"^failed: (.+)$", output, re.MULTILINE))


FAILS_ONCE = "def test_fails_once(once): assert not once('once'), 'the first failure'"
FAILS = "def test_fails(): assert False, 'a fault'"


def test_a_test_that_fails_once_is_unsteady(suite: Suite) -> None:
    suite.write("first/test_once.py", FAILS_ONCE)
    suite.summary.parent.mkdir()
    suite.summary.write_text("an earlier step\n")
    ended = suite.judge("test", "test-browser")
    assert ended.code == 0, ended.output
    assert unsteady(ended.output) == ["first/test_once.py::test_fails_once"]
    assert "AssertionError: the first failure" in ended.output.partition("\nunsteady: ")[2]
    assert ended.last_line == "2 passed, 0 skipped, 1 unsteady, 0 failed"
    assert suite.summary.read_text().startswith("an earlier step\n")
    summary = suite.summary.read_text().removeprefix("an earlier step\n")
    assert summary in ended.output
    assert unsteady(summary) == unsteady(ended.output)


def test_a_test_that_fails_twice_fails_the_run(suite: Suite) -> None:
    suite.write("second/test_twice.py", FAILS, FAILS_ONCE)
    ended = suite.judge("test-browser")
    assert ended.code == 1, ended.output
    assert failed(ended.output) == ["second/test_twice.py::test_fails"]
    assert unsteady(ended.output) == ["second/test_twice.py::test_fails_once"]
    assert ended.last_line == "1 passed, 0 skipped, 1 unsteady, 1 failed"


def test_a_make_target_repeats_no_test(suite: Suite) -> None:
    suite.write("first/test_strict.py", FAILS, FAILS_ONCE)
    ended = suite.make("test")
    assert ended.code == 2, ended.output
    assert re.search(r"^2 failed, 1 passed in ", ended.output, re.MULTILINE), ended.output


@pytest.mark.soak
def test_a_target_fails_if_a_test_fails_once(suite: Suite) -> None:
    suite.write("second/test_strict.py", FAILS_ONCE)
    ended = suite.make("test-browser")
    assert ended.code == 2, ended.output
    assert re.search(r"^1 failed, 1 passed in ", ended.output, re.MULTILINE), ended.output


@pytest.mark.soak
def test_nothing_is_repeated_if_nothing_fails(suite: Suite) -> None:
    ended = suite.judge("test", "test-browser")
    assert ended.code == 0, ended.output
    assert len(re.findall(r"^\d+ passed in ", ended.output, re.MULTILINE)) == 2
    assert ended.last_line == "2 passed, 0 skipped, 0 unsteady, 0 failed"


def test_failures_of_any_phase_and_crashes_are_repeated(suite: Suite) -> None:
    suite.write(
        "first/test_phases.py",
        """
@pytest.fixture
def unset(once):
    assert not once("setup"), "in the setup"

@pytest.fixture
def left(once):
    yield
    assert not once("teardown"), "in the teardown"

def test_setup(unset): pass

def test_both(left, once): assert not once("call"), "in the call"
""",
    )
    suite.write(
        "first/test_crash.py", "def test_crash(once):\n    if once('crash'): os.kill(os.getpid(), signal.SIGKILL)"
    )
    ended = suite.judge("test")
    assert ended.code == 0, ended.output
    report = ended.output.partition("\nunsteady: ")[2]
    for text in ("in the setup", "in the call", "in the teardown", "crashed while running 'first/test_crash.py"):
        assert text in report
    assert ended.last_line == "1 passed, 0 skipped, 3 unsteady, 0 failed"


def test_all_tests_run_although_workers_crash(suite: Suite) -> None:
    suite.write(
        "first/test_crash.py",
        "@pytest.mark.xdist_group('one')",
        "@pytest.mark.parametrize('number', range(5))",
        "def test_group(number):\n    if number == 2: os._exit(1)",
        "@pytest.mark.parametrize('number', range(4))",
        "def test_last(number):\n    if number % 2: os._exit(1)",
    )
    ended = suite.make("test")
    assert re.search(r"^3 failed, 7 passed in ", ended.output, re.MULTILINE), ended.output


def test_a_test_is_known_by_any_id(suite: Suite) -> None:
    names = ["a b", "[x]", "a::b", "a@b", 'it\'s "so"', "größe", "-k", "$HOME"]
    suite.write(
        "first/test_ids.py",
        f"NAMES = {names!r}",
        """
@pytest.mark.xdist_group("of one worker")
@pytest.mark.parametrize("name", NAMES)
def test_id(name, once):
    assert not once(NAMES.index(name))
    assert name != "größe"
""",
    )
    ended = suite.judge("test")
    ids = {f"first/test_ids.py::test_id[{name.encode('unicode_escape').decode()}]" for name in names}
    assert {*unsteady(ended.output), *failed(ended.output)} == ids
    assert failed(ended.output) == [r"first/test_ids.py::test_id[gr\xf6\xdfe]"]
    assert ended.last_line == "1 passed, 0 skipped, 7 unsteady (more than 3), 1 failed"


@pytest.mark.parametrize(("first", "second", "code"), [pytest.param(2, 1, 0, marks=pytest.mark.soak), (2, 2, 1)])
def test_a_run_may_have_three_unsteady_tests(suite: Suite, first: int, second: int, code: int) -> None:
    for folder, count in (("first", first), ("second", second)):
        suite.write(
            f"{folder}/test_in_{folder}.py",
            f"@pytest.mark.parametrize('number', range({count}))",
            f"def test_number(number, once): assert not once(f'{folder}-{{number}}')",
        )
    ended = suite.judge("test", "test-browser")
    assert ended.code == code, ended.output
    assert len(unsteady(ended.output)) == first + second
    assert not failed(ended.output)


@pytest.mark.parametrize(("number", "repeated"), [(30, True), (31, False)])
def test_at_most_thirty_failures_are_repeated(
    monkeypatch: pytest.MonkeyPatch, number: int, *, repeated: bool
) -> None:
    tests = [f"test_{index}" for index in range(number)]
    first = Run(Outcomes(failures=dict.fromkeys(tests, "by chance")), None)
    again = Mock(return_value=Run(Outcomes(passed=tests), None))
    monkeypatch.setattr(unsteady_runs, "run_target", Mock(return_value=first))
    monkeypatch.setattr(unsteady_runs, "run_alone", again)
    verdict = unsteady_runs.Verdict()
    unsteady_runs.add_target(verdict, "test")
    assert [*again.call_args_list] == ([call(tests)] if repeated else [])
    assert [*verdict.unsteady] == (tests if repeated else [])
    assert verdict.failed == ([] if repeated else tests)


@pytest.mark.soak
def test_many_failures_are_not_repeated(suite: Suite) -> None:
    suite.write(
        "second/test_many.py",
        "@pytest.mark.parametrize('number', range(31))",
        "def test_number(number, once): assert not once(str(number))",
    )
    ended = suite.judge("test-browser")
    assert ended.code == 1, ended.output
    assert len(re.findall(r"^31 failed, 1 passed in ", ended.output, re.MULTILINE)) == 1
    assert ended.last_line == "1 passed, 0 skipped, 0 unsteady, 31 failed"


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("assert False", "make test-browser: no tests could be read from second/test_end.py"),
        ("def test_end(): os.kill(os.getpid(), signal.SIGKILL)", "make test-browser: pytest did not reach its end"),
        pytest.param(
            "def test_end(): os._exit(1)",
            "make test-browser: pytest did not reach its end",
            marks=pytest.mark.soak,
        ),
        pytest.param(
            "def test_end(): pytest.exit('end')",
            "make test-browser: the run was interrupted",
            marks=pytest.mark.soak,
        ),
        (
            "def test_end(once): assert not once('end'); pytest.exit('end')",
            "make test-browser, repeated: the run was interrupted",
        ),
    ],
)
def test_a_run_that_a_test_ends_fails(suite: Suite, code: str, reason: str) -> None:
    suite.write("second/test_end.py", code)
    ended = suite.judge("test-browser")
    assert ended.code == 1, ended.output
    assert any(line.startswith(reason) for line in failed(ended.output)), ended.output
    assert not unsteady(ended.output)


@pytest.mark.parametrize(
    ("hook", "reason"),
    [
        ("def pytest_runtestloop(): raise RuntimeError", "pytest had an internal error"),
        ("def pytest_runtest_protocol(): return True", "2 tests did not run"),
        *(
            pytest.param(hook, reason, marks=pytest.mark.soak)
            for hook, reason in (
                ("def pytest_unconfigure(): raise RuntimeError", "pytest did not reach its end"),
                ("raise RuntimeError", "pytest did not reach its end"),
                ("def pytest_collection_modifyitems(items): items.clear()", "no test was found"),
                (
                    "def pytest_collection_modifyitems(items):\n    for item in items: item.add_marker('skip')",
                    "no test ran",
                ),
            )
        ),
    ],
)
def test_a_run_that_pytest_does_not_complete_fails(suite: Suite, hook: str, reason: str) -> None:
    suite.write("second/conftest.py", hook)
    suite.write("second/test_once.py", FAILS_ONCE)
    ended = suite.judge("test-browser")
    assert ended.code == 1, ended.output
    assert any(line.startswith(f"make test-browser: {reason}") for line in failed(ended.output)), ended.output
    assert not unsteady(ended.output)


@pytest.mark.parametrize("target", ["test", "test-browser"])
def test_skipped_tests_are_counted_by_their_reasons(suite: Suite, target: str) -> None:
    folder = {"test": "first", "test-browser": "second"}[target]
    suite.write(
        f"{folder}/test_skipped.py",
        "@pytest.fixture\ndef nginx(): pytest.skip('nginx is not installed')",
        "def test_one(nginx): pass",
        "@pytest.mark.skipif(True, reason='curl is not installed')\ndef test_two(): pass",
        "def test_three(): pytest.skip('nginx is not installed')",
        "@pytest.mark.xfail(reason='a known fault')\ndef test_four(): assert False",
    )
    suite.write(f"{folder}/test_skipped_file.py", "pytest.skip('there is no disk', allow_module_level=True)")
    ended = suite.judge(target)
    assert ended.code == 0, ended.output
    assert ended.output.rstrip().splitlines()[-5:] == [
        "skipped 1: curl is not installed",
        "skipped 1: expected to fail",
        "skipped 2: nginx is not installed",
        "skipped 1: there is no disk",
        "1 passed, 5 skipped, 0 unsteady, 0 failed",
    ]


def test_skipped_tests_and_found_cards_are_not_excused(suite: Suite) -> None:
    suite.write(
        "second/test_final.py",
        "def test_skipped(once):\n    if not once('skip'): pytest.skip('other platform')\n    assert False",
        "def test_cards(once): assert not once('card'), 'numbers of cards are in the log'",
    )
    ended = suite.judge("test-browser")
    assert ended.code == 1, ended.output
    assert failed(ended.output) == ["second/test_final.py::test_cards", "second/test_final.py::test_skipped"]
