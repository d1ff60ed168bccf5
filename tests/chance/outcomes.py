"""A plugin of pytest that writes the outcomes of a run to a file, and that can run only given tests.

`-p tests.chance.outcomes --outcomes=FILE` writes them, and `--only=FILE` runs the tests whose ids are in the file.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from streams.wire.codec import dumps, loads

PLUGIN = __name__


@dataclass
class Outcomes:
    """The outcomes of a run of pytest that reached its end. A test is known by the id in its reports."""

    exit_code: int = pytest.ExitCode.OK
    passed: list[str] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    """Why each test was skipped. A file that was skipped while pytest read it is one of them."""
    failures: dict[str, str] = field(default_factory=dict)
    """The text of all failures of a test: of its setup, its call and its teardown, or of its worker."""
    uncollected: list[str] = field(default_factory=list)
    """Files in which pytest found no tests because of an error."""
    unrun: list[str] = field(default_factory=list)
    """Tests that were found, but did not run."""
    plain_ids: dict[str, str] = field(default_factory=dict)
    """The id of each test of `--only`, without the group that xdist may append to it."""


def read_outcomes(path: Path) -> Outcomes | None:
    """Return the outcomes of a run, or None if it did not reach its end."""
    return Outcomes(**loads(path.read_bytes())) if path.exists() else None


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--outcomes", type=Path, help="write the outcomes of the run to this file")
    parser.addoption("--only", type=Path, help="run only the tests whose ids are in this file")


def pytest_configure(config: pytest.Config) -> None:
    path = config.getoption("outcomes")
    if path and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Recorder(path, config.getoption("only")))


class _Recorder:
    """The plugin in the process that gets all reports."""

    def __init__(self, path: Path, only: Path | None) -> None:
        self._path = path
        self._only = only
        self._session: pytest.Session | None = None
        self._outcomes = Outcomes()
        self._found: set[str] = set()
        self._ran: set[str] = set()

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        self._session = session

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        if self._only is None:
            return
        wanted = set(loads(self._only.read_bytes()))
        found = {item: next(iter(wanted & _ids(item)), None) for item in items}
        self._outcomes.plain_ids = {known: _valid(item.nodeid) for item, known in found.items() if known}
        config.hook.pytest_deselected(items=[item for item in items if not found[item]])
        items[:] = [item for item in items if found[item]]

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._found.update(_valid(item.nodeid) for item in session.items)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: Sequence[str]) -> None:
        self._found.update(map(_valid, ids))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        name = _valid(report.nodeid)
        if report.failed and name not in self._outcomes.uncollected:  # Each worker of xdist may report it.
            self._outcomes.uncollected.append(name)
        elif report.skipped:
            self._outcomes.skipped[name] = _reason_of(report)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        test = _valid(report.nodeid)
        self._ran.add(test)
        if report.failed:
            earlier = self._outcomes.failures.get(test, "")
            self._outcomes.failures[test] = earlier + _valid(_text_of(report))
        elif report.skipped:
            self._outcomes.skipped[test] = _reason_of(report)
        elif report.passed and report.when == "call":
            self._outcomes.passed.append(test)

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self) -> None:
        """Write the outcomes, unless the cleanup of another plugin failed."""
        if self._session is None:
            return
        self._outcomes.exit_code = int(self._session.exitstatus)
        self._outcomes.passed = sorted(set(self._outcomes.passed) - self._outcomes.failures.keys())
        self._outcomes.skipped = {
            test: reason for test, reason in self._outcomes.skipped.items() if test not in self._outcomes.failures
        }
        self._outcomes.unrun = sorted(self._found - self._ran)
        self._path.write_bytes(dumps(self._outcomes))


def _ids(item: pytest.Item) -> set[str]:
    """Return the ids that reports of a test may have: xdist appends the names of its groups."""
    groups = {
        str(mark.args[0] if mark.args else mark.kwargs.get("name", "default"))
        for mark in item.iter_markers("xdist_group")
    }
    return {_valid(item.nodeid), _valid(f"{item.nodeid}@{'_'.join(sorted(groups))}")}


def _reason_of(report: pytest.CollectReport | pytest.TestReport) -> str:
    """Return why a test was skipped, or that it failed as it is expected to."""
    if isinstance(report.longrepr, tuple):
        return _valid(report.longrepr[2].removeprefix("Skipped: "))
    return "expected to fail"


def _text_of(report: pytest.TestReport) -> str:
    parts = [(f"failure in {report.when}", report.longreprtext), *report.sections]
    return "".join(f"----- {name} -----\n{text.rstrip()}\n" for name, text in parts)


def _valid(text: str) -> str:
    """Return a text that can be encoded: an id or an output may have halves of surrogate pairs."""
    return text.encode(errors="backslashreplace").decode()
