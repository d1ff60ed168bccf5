"""The tests that the date can influence, which `make test-dates` runs: the marker `calendar`.

A length of time is the same on every day: a `timedelta`, seconds since 1970, the lifetime of a token. Months, the
days of a time zone, and fixed dates beside the real time are not. A test is found by the words for these in its
source, or in that of the definitions of its file which it uses.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.code.source_files import ROOT, name, tree

DATES = re.compile(
    r"""
    \binterval\ '[^']*\b(day|week|month|year) | \b(days|months|years)\ =>  # SQL counts days in a time zone
    | period | ["']P\d+[YMWD]\b                         # months of subscriptions, days of boards
    | \b2\d{3}-\d\d-\d\dT\d | \bdatetime\(2\d{3}\b      # fixed dates
    | \bZoneInfo\b | \btime_?zone\b | \.astimezone\(
    | \bmidnight\b | per_day\b | weekday | %Y | \.date\(\) | \.replace\((year|month|day|hour)\b
    """,
    re.VERBOSE | re.IGNORECASE,
)
CALLS = re.compile(
    r"\b(subscribe\w*|create_sub|add_weekly|renew\w*|_?upgrade|Schedule|travel|move_to|move_clock)\(|/dev/clock\b"
)
"""Calls of functions of the tests that begin, renew or prorate periods, or that move a clock to another date."""
ALWAYS = (
    "tests/app/leaderboards/test_guide.py",
    "tests/app/payments/test_payments_guide.py",
    "tests/app/predictions/test_asynchronous.py",
    "tests/calendar/test_calendar.py",
)
"""Tests whose dates are not in their source: in the pages that they follow, or in the free units of each day."""
NEVER = ("tests/bench/", "tests/browser/", "tests/deploy/", "tests/sample/")
"""Tests of pages and of several processes. Tests of `app` have the same rules of the calendar in one process."""


def dated_files() -> list[Path]:
    """Return the files with tests that the date can influence."""
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    return [path for path in files if any(depends_on_date(path, test) for test, _ in definitions(path))]


def depends_on_date(path: Path, test: str) -> bool:
    """Return whether the date can influence a test function of a file."""
    return name(path) in ALWAYS or test in _dated(path)


@cache
def _dated(path: Path) -> frozenset[str]:
    """Return what a file defines with such words, or by other such definitions of the file."""
    if name(path).startswith(NEVER):
        return frozenset()
    sources = dict(definitions(path))
    found = {each for each, source in sources.items() if DATES.search(source) or CALLS.search(source)}
    further = found
    while further:
        uses = re.compile(rf"\b({'|'.join(further)})\b")
        further = {each for each in sources.keys() - found if uses.search(sources[each])}
        found |= further
    return frozenset(found)


def definitions(path: Path, *, methods: bool = False) -> Iterator[tuple[str, str]]:
    """Yield the name and the source of each function, class and variable of a file.

    With `methods`, a class is not one definition, but each of its members is.
    """
    lines, body = path.read_text().splitlines(), tree(path).body
    if methods:
        body = [each for node in body for each in (node.body if isinstance(node, ast.ClassDef) else [node])]
    for node in body:
        first = min(each.lineno for each in (node, *getattr(node, "decorator_list", [])))
        source = "\n".join(lines[first - 1 : node.end_lineno])
        match node:
            case ast.FunctionDef(name=defined) | ast.AsyncFunctionDef(name=defined) | ast.ClassDef(name=defined):
                yield defined, source
            case ast.Assign(targets=[ast.Name(id=defined)]) | ast.AnnAssign(target=ast.Name(id=defined)):
                yield defined, source
