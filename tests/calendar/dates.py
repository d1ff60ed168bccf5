"""Runs the tests that the date can influence at hard dates: `python -m tests.calendar.dates`.

libfaketime moves the clock of all processes of a run, including PostgreSQL and Valkey, by one offset. Time passes
as usual, and the times of files stay real. Arguments are pytest's, except `--at`, which selects instants:
`--at 2028-02-29 -- tests/app/payments`.
"""

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from time import monotonic
from typing import NamedTuple

from tests.calendar.calendar_tests import dated_files
from tests.calendar.clock import utc_now
from tests.code.source_files import ROOT, name

INSTANTS = {
    "2027-01-28T12:00:00Z": "the last day that all months have",
    "2027-01-29T23:59:00Z": "a month later is in February, in which this day is missing or the last",
    "2028-01-30T12:00:00Z": "a month later is the leap day",
    "2027-01-31T12:00:00Z": "the day that five months lack",
    "2027-02-28T23:59:00Z": "the end of February",
    "2028-02-29T12:00:00Z": "a year later there is no such day",
    "2027-03-14T06:59:00Z": "America changes to daylight-saving time",
    "2030-03-31T00:59:00Z": "31 March, on which Europe changes to daylight-saving time",
    "2027-10-31T00:59:00Z": "31 October, on which Europe changes to standard time",
    "2027-11-07T05:59:00Z": "America changes to standard time",
    "2027-12-31T23:58:30Z": "the year ends during the tests",
    "2028-01-01T00:00:00Z": "the first second of a year",
}
ZONES = {
    "2027-03-14T06:59:00Z": "America/New_York",
    "2030-03-31T00:59:00Z": "Europe/Berlin",
    "2027-10-31T00:59:00Z": "Europe/Berlin",
    "2027-11-07T05:59:00Z": "America/New_York",
}
"""The time zone of the processes at an instant. That of the others is UTC."""
_COUNT = re.compile(r"(\d+) (passed|failed|errors?|skipped)")
_SUMMARY = re.compile(r"^[^\[]* in [\d.]+s\b")
_PYTEST = ("-n", "4", "--dist", "loadgroup", "--no-loadscope-reorder", "-m", "calendar and not soak")
_PROBE = "import time; print(time.time())"
_PRECISION_S = 30


class Outcome(NamedTuple):
    instant: str
    counts: dict[str, int]
    seconds: float
    passed: bool

    def __str__(self) -> str:
        counts = ", ".join(f"{count} {name}" for name, count in sorted(self.counts.items())) or "no test ran"
        return f"{self.instant}  {'ok    ' if self.passed else 'FAILED'}  {counts}, {self.seconds:.0f} s"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.calendar.dates", description=__doc__)
    parser.add_argument("--at", action="append", default=[], metavar="INSTANT", help="the beginning of an instant")
    parser.add_argument("pytest", nargs="*", help="arguments of pytest")
    given = parser.parse_args()
    chosen = [instant for instant in INSTANTS if not given.at or instant.startswith(tuple(given.at))]
    if not chosen:
        parser.error(f"--at must be the beginning of one of {', '.join(INSTANTS)}")
    if not any((ROOT / argument.partition("::")[0]).exists() for argument in given.pytest):
        given.pytest += map(name, dated_files())  # Collecting all tests would take as long as running these.
    outcomes = []
    for instant in chosen:
        print(f"dates: {instant}: {INSTANTS[instant]}", flush=True)  # noqa: T201 - it is a command
        outcomes.append(_run(instant, given.pytest))
        print(f"dates: {outcomes[-1]}", flush=True)  # noqa: T201
    print("\n" + "\n".join(f"{outcome}  {INSTANTS[outcome.instant]}" for outcome in outcomes))  # noqa: T201
    return 0 if all(outcome.passed for outcome in outcomes) else 1


def _run(instant: str, arguments: Sequence[str]) -> Outcome:
    """Run the tests with a clock that is at `instant` now."""
    env = _environment(datetime.fromisoformat(instant), ZONES.get(instant, "UTC"))
    began_s, counts = monotonic(), dict[str, int]()
    command = [sys.executable, "-m", "pytest", *_PYTEST, *arguments]
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)  # noqa: T201
            if _SUMMARY.match(line):
                counts = {name: int(count) for count, name in _COUNT.findall(line)}
    return Outcome(instant, counts, monotonic() - began_s, process.returncode == 0)


def _environment(at: datetime, zone: str) -> dict[str, str]:
    """Return an environment in which the clock of each new process is ahead of the real one by the same offset."""
    ahead_s = (at - utc_now()).total_seconds()
    env = {
        **os.environ,  # noqa: TID251 - it is handed on
        "TZ": zone,
        "LD_PRELOAD": str(_library()),
        "FAKETIME": f"{ahead_s:+.0f}",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }
    shown_s = float(subprocess.check_output([sys.executable, "-c", _PROBE], env=env))
    if abs(shown_s - at.timestamp()) > _PRECISION_S:
        sys.exit("dates: libfaketime cannot move the clock: its library is for Linux on x86-64")
    return env


def _library() -> Path:
    spec = find_spec("libfaketime")
    if spec is None or spec.origin is None:
        sys.exit("dates: libfaketime is missing, which the extra `dev` has")
    return Path(spec.origin).parent / "vendor" / "libfaketime" / "src" / "libfaketime.so.1"


if __name__ == "__main__":
    sys.exit(main())
