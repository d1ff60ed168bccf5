"""Run make targets that run pytest, and each failed test once more: `python -m tests.chance.unsteady test …`.

A test that fails again fails the run. A test that passes then is unsteady: it is reported with its first failure. A
few of these do not fail the run. Skipped tests do not fail it either: they are counted, with their reasons.
"""

import re
import sys
from argparse import ArgumentParser
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from tests.chance.runs import run_alone, run_target, say

MOST_UNSTEADY = 3
"""How many unsteady tests a run may have, over all targets."""
_MOST_REPEATED = 30
"""If more tests of a target fail, none is repeated: the run fails anyway, and this many do not fail by chance."""
_CERTAIN = re.compile(r"\bnumbers? of (a card|cards)\b")
"""Failures that an earlier test may have caused: that the test passes alone does not show that they are chance."""


@dataclass
class Verdict:
    """The results of the tests of some targets."""

    passed: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    """How many tests were skipped, by the reason."""
    unsteady: dict[str, str] = field(default_factory=dict)
    """The first failure of each test that passed when it was repeated."""
    failed: list[str] = field(default_factory=list)
    """Tests, and targets whose run was not complete."""

    @property
    def is_good(self) -> bool:
        return not self.failed and len(self.unsteady) <= MOST_UNSTEADY

    def closing_line(self) -> str:
        excess = f" (more than {MOST_UNSTEADY})" if len(self.unsteady) > MOST_UNSTEADY else ""
        passed, skipped = f"{self.passed} passed", f"{self.skipped.total()} skipped"
        return f"{passed}, {skipped}, {len(self.unsteady)} unsteady{excess}, {len(self.failed)} failed"


def add_target(verdict: Verdict, target: str) -> None:
    """Run a target and repeat what failed."""
    run = run_target(target)
    failures = run.outcomes.failures
    verdict.passed += len(run.outcomes.passed)
    verdict.skipped.update(run.outcomes.skipped.values())
    if run.fault:
        verdict.failed += [f"make {target}: {run.fault}", *failures]
    elif len(failures) > _MOST_REPEATED:
        verdict.failed += failures
    elif failures:
        say(f"\nmake {target}: {len(failures)} failed, and now run once more, alone")
        _repeat(verdict, target, failures)


def _repeat(verdict: Verdict, target: str, failures: dict[str, str]) -> None:
    again = run_alone([*failures])
    passed = set() if again.fault else set(again.outcomes.passed)
    if again.fault:
        verdict.failed.append(f"make {target}, repeated: {again.fault}")
    for test, failure in failures.items():
        name = again.outcomes.plain_ids.get(test, test)
        if name in passed and not _CERTAIN.search(failure):
            verdict.unsteady[name] = failure
        else:
            verdict.failed.append(name)


def report(verdict: Verdict) -> str:
    """Return the text that ends a run."""
    skipped = [f"skipped {count}: {reason}" for reason, count in sorted(verdict.skipped.items())]
    unsteady = [f"unsteady: {test}\n{failure}" for test, failure in verdict.unsteady.items()]
    failed = [f"failed: {test}" for test in verdict.failed]
    return "\n".join([*skipped, *unsteady, *failed, verdict.closing_line()])


def main() -> int:
    parser = ArgumentParser(description="Run make targets that run pytest, and each failed test once more.")
    parser.add_argument("--summary", type=Path, help="append the report to this file")
    parser.add_argument("targets", nargs="+")
    arguments = parser.parse_args()
    verdict = Verdict()
    for target in arguments.targets:
        add_target(verdict, target)
    text = report(verdict)
    say(f"\n{text}")
    if arguments.summary:
        arguments.summary.parent.mkdir(parents=True, exist_ok=True)
        with arguments.summary.open("a") as summary:
            summary.write(f"{text}\n")
    return 0 if verdict.is_good else 1


if __name__ == "__main__":
    sys.exit(main())
