"""The tests that the date can influence, which `make test-dates` runs: the marker `calendar`.

A length of time is the same on every day: a `timedelta`, seconds since 1970, the lifetime of a token. Months, the
days of a time zone, and fixed dates beside the real time are not. A test is found by the words for these in its
source, or in that of the definitions of its file which it uses. A class of tests is one definition.
"""

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from tests.code.source_files import ROOT, name, tree

_CLOCK = r"\b(now|clock_timestamp|statement_timestamp|transaction_timestamp)\(\)|\bcurrent_timestamp\b"
_SHORT = r"\(?(interval\ '\d+\ (s|min|hour)|make_interval\((secs|mins|hours)\b)"
DATES = re.compile(
    rf"""
    # SQL: days, months and years, their parts, and its clock beside anything but seconds, minutes or hours.
    \binterval\ '[^']*\b(day|week|mon|year) | '[^']*\b(day|week|mon|year)[^']*'\s*::\s*interval\b
    | [-+]\s*'[^']*\b(day|week|mon|year) | \b(days|weeks|months|years)\ =>
    | \b(date_trunc|date_part|date_bin|to_char|to_date|justify_\w+|age)\( | \bextract\((?!\s*epoch\b)
    | \bcurrent_(date|time)\b | \blocaltime(stamp)?\b(?!") | ::(date|time)\b | \bas\ date\) | \bat\ time\ zone\b
    | ({_CLOCK})\s*([-+]\s*(?!{_SHORT})[^\s"]|[<>]) | [-+<>]=?\s*({_CLOCK})(?!\s*[-+]\s*{_SHORT})
    # Python: the parts of a time, texts of them, and whole days.
    | \.(month|year|day)\b | \.date\(\) | \.replace\(([^()]*,\s*)?(year|month|day|hour)\b
    | \b(monthrange|monthcalendar|(from)?isocalendar|(from|to)ordinal|(utc)?timetuple|relativedelta)\b | weekday
    | \bdatetime\.combine\( | \.astimezone\( | \b(strftime|ctime|gmtime|mktime|timegm|formatdate|format_datetime)\b
    | (?-i:%-?[mHMYyjUVWGB])\b | [^"']:%-?[a-z] | \b(isoformat|rfc3339)\(.*\)\s*\[
    | (%|//|\bdivmod\(.*,)\s*\(?(86_?400(_?000)?\b|24\ \*|DAY(_M?S)?\b|timedelta\()
    # Months of subscriptions, days of boards, fixed dates and time zones.
    | period | ["']P\d+[YMWD]\b | \b2\d{{3}}-\d\d-\d\dT\d | \bdatetime\(2\d{{3}}\b
    | \bZoneInfo\b | \btime_?zone\b | \bmidnight\b | per_day\b
    """,
    re.VERBOSE | re.IGNORECASE,
)
CALLS = re.compile(
    r"\b(subscribe\w*|create_sub|add_weekly|add_plan|renew\w*|_?upgrade|Schedule|travel|move_to|move_clock)\(|/dev/clock\b"
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
    """Return whether the date can influence a test function, or a class of tests, of a file."""
    return name(path) in ALWAYS or test in _dated(path)


@cache
def _dated(path: Path) -> frozenset[str]:
    """Return what a file defines with such words, or by other such definitions of the file."""
    if name(path).startswith(NEVER):
        return frozenset()
    return dated(definitions(path))


def dated(defined: Iterable[tuple[str, str]]) -> frozenset[str]:
    sources = dict(defined)
    found = {name for name, source in sources.items() if DATES.search(source) or CALLS.search(source)}
    further = found
    while further:
        uses = re.compile(rf"\b({'|'.join(further)})\b")
        further = {name for name in sources.keys() - found if uses.search(sources[name])}
        found |= further
    return frozenset(found)


def definitions(path: Path, *, methods: bool = False) -> Iterator[tuple[str, str]]:
    """Yield the name and the source of each function, class and variable of a file.

    With `methods`, a class is not one definition, but each of its members is.
    """
    lines, body = path.read_text().splitlines(), tree(path).body
    if methods:
        body = [member for node in body for member in (node.body if isinstance(node, ast.ClassDef) else [node])]
    for node in body:
        first = min(part.lineno for part in (node, *getattr(node, "decorator_list", [])))
        source = "\n".join(lines[first - 1 : node.end_lineno])
        match node:
            case ast.FunctionDef(name=defined) | ast.AsyncFunctionDef(name=defined) | ast.ClassDef(name=defined):
                yield defined, source
            case ast.Assign(targets=[target]) | ast.AnnAssign(target=target):
                yield from ((part.id, source) for part in ast.walk(target) if isinstance(part, ast.Name))
