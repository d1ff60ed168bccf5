"""Findings of checks, and the report that is printed."""

from collections.abc import Sequence
from itertools import groupby
from textwrap import wrap

from storage.operators.doctor_reports import Finding, Report, State

_WIDTH = 100
_INDENT = " " * 4


class Area:
    """Creates the findings of one part of the deployment."""

    def __init__(self, name: str) -> None:
        self.name = name

    def good(self, point: str, seen: str) -> Finding:
        return Finding(area=self.name, point=point, state=State.GOOD, seen=seen)

    def doubtful(self, point: str, seen: str, *, why: str, fix: str) -> Finding:
        return Finding(area=self.name, point=point, state=State.DOUBTFUL, seen=seen, why=why, fix=fix)

    def broken(self, point: str, seen: str, *, why: str, fix: str) -> Finding:
        return Finding(area=self.name, point=point, state=State.BROKEN, seen=seen, why=why, fix=fix)


def error_text(error: Exception) -> str:
    """Return the message of an error, also for a timeout, which has none."""
    return str(error) or "no answer in time"


def as_text(report: Report) -> str:
    """Return a report as lines for a terminal."""
    lines = [f"Parley at {report.public_url}, seen from {report.host} at {report.checked_at}"]
    for area, findings in groupby(report.findings, lambda finding: finding.area):
        lines += ["", area]
        for finding in findings:
            lines += _lines(finding)
    return "\n".join([*lines, "", summary(report.findings), ""])


def summary(findings: Sequence[Finding]) -> str:
    """Return how many findings of each state there are: `12 good, 1 doubtful, 0 broken`."""
    return ", ".join(f"{sum(finding.state is state for finding in findings)} {state.value}" for state in State)


def _lines(finding: Finding) -> list[str]:
    lines = _wrapped(f"{finding.state.value:9} {finding.point}: {finding.seen}", "  ", _INDENT + " " * 8)
    if finding.why:
        lines += _wrapped(f"why: {finding.why}", _INDENT + " " * 8, _INDENT + " " * 13)
    if finding.fix:
        lines += _wrapped(f"fix: {finding.fix}", _INDENT + " " * 8, _INDENT + " " * 13)
    return lines


def _wrapped(text: str, first: str, further: str) -> list[str]:
    return wrap(
        text,
        _WIDTH,
        initial_indent=first,
        subsequent_indent=further,
        break_long_words=False,
        break_on_hyphens=False,
    )
