"""The tests that the date can influence, which `make test-dates` runs: the marker `calendar`."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.source_files import ROOT

RULES = (
    "tests/app/assets/",
    "tests/app/events/",
    "tests/app/leaderboards/",
    "tests/app/payments/",
    "tests/app/test_auth_sessions.py",
    "tests/app/accounts/test_deactivation.py",
    "tests/app/accounts/test_ended_sessions.py",
    "tests/app/accounts/test_sessions.py",
    "tests/app/withdrawals/",
    "tests/storage/test_codes.py",
    "tests/vendors/payments/",
    "tests/wire/test_period.py",
)
"""Tests of rules of the calendar, some of which read no time: periods, resets, freezes, tokens with an end."""
CLOCK = ROOT / "tests" / "clock.py"
_IMPORT = re.compile(r"^\s*(?:from (tests[\w.]*) import ([^(\n]+|\([^)]*\))|import (tests[\w.]+))", re.MULTILINE)
_DATE = re.compile(r"\bnow\(\)\s*[-+]|[-+]\s*now\(\)|\bclock\.now\(", re.IGNORECASE)
"""SQL that calculates with the date, and reads of an app's clock. To fill a column with the date always works."""


def depends_on_date(path: Path) -> bool:
    """Return whether the date can influence the tests of a file."""
    if path.relative_to(ROOT).as_posix().startswith(RULES):
        return True
    reached = _reached([path, *_fixtures(path)])
    return CLOCK in reached or any(map(_calculates, reached))


def _fixtures(path: Path) -> Iterator[Path]:
    """Yield the files with the fixtures of a folder, but not those of all tests."""
    for folder in path.parents:
        if folder == ROOT / "tests":
            return
        if (found := folder / "conftest.py").exists():
            yield found


def _reached(files: list[Path]) -> set[Path]:
    """Return the files of the tests that `files` import, also by others, and `files` themselves."""
    reached: set[Path] = set()
    while files:
        if (path := files.pop()) not in reached:
            reached.add(path)
            files += _imports(path)
    return reached


@cache
def _calculates(path: Path) -> bool:
    return _DATE.search(path.read_text()) is not None


@cache
def _imports(path: Path) -> tuple[Path, ...]:
    modules: list[str] = []
    for source, names, module in _IMPORT.findall(path.read_text()):
        modules += [module] if module else [source, *(f"{source}.{name}" for name in re.findall(r"\w+", names))]
    files = (ROOT / f"{module.replace('.', '/')}.py" for module in modules)
    return tuple(file for file in files if file.exists())
