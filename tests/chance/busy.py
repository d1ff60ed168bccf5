"""Run a make target several times on a busy machine, and count the failures of each test.

`python -m tests.chance.busy --runs 5 test` runs `make test` five times.
"""

import subprocess
import sys
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.chance.runs import run_target, say

_SPIN = "import os\nparent = os.getppid()\nwhile os.getppid() == parent: pass"
"""A program that keeps a core busy until its parent ends, however that ends."""


@contextmanager
def busy_core() -> Iterator[None]:
    process = subprocess.Popen([sys.executable, "-c", _SPIN], start_new_session=True)
    try:
        yield
    finally:
        process.kill()
        process.wait()


@dataclass
class Count:
    """What several runs of a target found."""

    failures: Counter[str] = field(default_factory=Counter)
    """In how many runs each test failed."""
    faults: Counter[str] = field(default_factory=Counter)
    """How many runs were not complete, by the reason."""


def count_failures(target: str, arguments: str, *, runs: int) -> Count:
    count = Count()
    for number in range(1, runs + 1):
        say(f"make {target}: run {number} of {runs}, with one core kept busy")
        run = run_target(target, arguments)
        count.failures.update(run.outcomes.failures.keys())
        if run.fault:
            count.faults[run.fault] += 1
    return count


def report(count: Count, target: str, *, runs: int) -> str:
    lines = [f"failed in {times} of {runs}: {test}" for test, times in count.failures.most_common()]
    lines += [
        f"make {target} not complete in {times} of {runs}: {why}" for why, times in count.faults.most_common()
    ]
    closing = f"{_number(len(count.failures), 'test')} failed in {_number(runs, 'run')} with one core kept busy"
    if count.faults:
        closing += f", {count.faults.total()} not complete"
    return "\n".join([*lines, closing])


def _number(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def main() -> int:
    parser = ArgumentParser(description="Run a make target several times on a busy machine, and count failures.")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--arguments", default="", help="further arguments of pytest")
    parser.add_argument("target")
    options = parser.parse_args()
    with busy_core():
        count = count_failures(options.target, options.arguments, runs=options.runs)
    say(report(count, options.target, runs=options.runs))
    return 1 if count.failures or count.faults else 0


if __name__ == "__main__":
    sys.exit(main())
