"""The figures as Markdown: a row for each operation, and a row for each case."""

from collections.abc import Sequence
from itertools import groupby

from bench import figures
from bench.console.measuring import TARGET_MS, Measured
from bench.console.operations import FIRST
from bench.figures import Spread

_MIDDLE = "middle"


def report(measured: Sequence[Measured]) -> str:
    """Return a table with a row for each operation, and one of the cases that have missed the target."""
    rows = [_of_operation(path, list(cases)) for path, cases in groupby(measured, lambda each: each.operation)]
    head = ["list", "calls", "first page", "middle page", "slowest filter or search", "", "verdict"]
    missed = [each for each in measured if not each.met]
    summary = f"{len(measured)} pages, filters and searches of {len(rows)} lists: {len(missed)} miss the target"
    text = (
        f"{summary} of {TARGET_MS:.0f} ms for the 95th percentile in the server. Milliseconds in the server,"
        f" p50 / p95:\n\n{figures.table(head, rows)}"
    )
    return f"{text}\n{table_of_all(missed)}" if missed else text


def table_of_all(measured: Sequence[Measured]) -> str:
    head = [
        "list",
        "page, filter or search",
        "calls",
        "in the server, ms",
        "at the client, ms",
        "statuses",
        "verdict",
    ]
    return figures.table(head, [_of_case(each) for each in measured])


def _of_case(each: Measured) -> list[str]:
    statuses = ", ".join(map(str, sorted(each.statuses)))
    calls, verdict = str(len(each.client_s)), "met" if each.met else "missed"
    return [f"`{each.operation}`", each.case, calls, _ms(each.server_s), _ms(each.client_s), statuses, verdict]


def _of_operation(path: str, cases: Sequence[Measured]) -> list[str]:
    first = next((each for each in cases if each.case == FIRST), None)
    middle = next((each for each in cases if each.case.startswith(_MIDDLE)), None)
    others = [each for each in cases if each not in (first, middle)]
    slowest = max(others, key=lambda each: each.p95_ms, default=None)
    return [
        f"`{path}`",
        str(sum(len(each.client_s) for each in cases)),
        *("-" if each is None else _ms(each.server_s) for each in (first, middle, slowest)),
        "" if slowest is None else slowest.case,
        "met" if all(each.met for each in cases) else "missed",
    ]


def _ms(seconds: Sequence[float]) -> str:
    spread = Spread.of(seconds)
    return f"{spread.at(50):,.0f} / {spread.at(95):,.0f}"
