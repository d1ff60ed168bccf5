"""Run a make target several times on a busy machine, and count the failures of each test.

`python -m tests.chance.busy --runs 5 test` runs `make test` five times.
"""

import subprocess
import sys
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

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


def failures_of(target: str, arguments: str, *, runs: int) -> Counter[str]:
    """Return in how many runs each test failed. Runs that were not complete count too, by the reason."""
    failures: Counter[str] = Counter()
    for number in range(1, runs + 1):
        say(f"make {target}: run {number} of {runs}, with one core kept busy")
        run = run_target(target, arguments)
        failures.update(run.outcomes.failures.keys())
        if run.fault:
            failures[f"make {target}: {run.fault}"] += 1
    return failures


def main() -> int:
    parser = ArgumentParser(description="Run a make target several times on a busy machine, and count failures.")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--arguments", default="", help="further arguments of pytest")
    parser.add_argument("target")
    options = parser.parse_args()
    with busy_core():
        failures = failures_of(options.target, options.arguments, runs=options.runs)
    for test, count in failures.most_common():
        say(f"failed in {count} of {options.runs}: {test}")
    say(f"{len(failures)} tests failed in {options.runs} runs with one core kept busy")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
