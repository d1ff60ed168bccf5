"""Runs of a make target that runs pytest, with the outcome of each test."""

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from streams.wire.codec import dumps
from tests.chance.outcomes import PLUGIN, Outcomes, read_outcomes

_MEANINGS: dict[int, str] = {
    pytest.ExitCode.INTERRUPTED: "the run was interrupted",
    pytest.ExitCode.INTERNAL_ERROR: "pytest had an internal error",
    pytest.ExitCode.USAGE_ERROR: "pytest was called wrongly",
    pytest.ExitCode.NO_TESTS_COLLECTED: "no test was found",
}


@dataclass(frozen=True)
class Run:
    """A run of pytest. `fault` is why it is no complete run of its tests, which makes its outcomes worthless."""

    outcomes: Outcomes
    fault: str | None


def run_target(target: str, arguments: str = "") -> Run:
    """Run `make target` in the current folder, with further arguments for pytest."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "outcomes"
        options = f"-p {PLUGIN} --outcomes={path} {arguments}".strip().replace("$", "$$")
        code = subprocess.run(["make", target, f"ARGS={options}"], check=False).returncode  # noqa: S607
        return _run_of(code, read_outcomes(path))


def run_alone(tests: Sequence[str]) -> Run:
    """Run some tests by their ids in one process, without xdist."""
    with TemporaryDirectory() as folder:
        path, only = Path(folder) / "outcomes", Path(folder) / "only"
        only.write_bytes(dumps(list(tests)))
        files = sorted({test.partition("::")[0] for test in tests})
        options = ("-p", PLUGIN, f"--outcomes={path}", f"--only={only}")
        code = subprocess.run([sys.executable, "-m", "pytest", *options, *files], check=False).returncode
        return _run_of(code, read_outcomes(path))


def say(text: str) -> None:
    """Print a text between the outputs of runs."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _run_of(code: int, outcomes: Outcomes | None) -> Run:
    if outcomes is None:
        return Run(Outcomes(), f"pytest did not reach its end (exit code {code})")
    return Run(outcomes, _fault(code, outcomes))


def _fault(code: int, outcomes: Outcomes) -> str | None:
    ended = outcomes.exit_code
    if outcomes.uncollected:
        return f"no tests could be read from {', '.join(outcomes.uncollected)}"
    if ended not in {pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED}:
        return _MEANINGS.get(ended, f"pytest ended with exit code {ended}")
    if outcomes.unrun:
        return f"{len(outcomes.unrun)} tests did not run"
    if bool(ended) != bool(outcomes.failures) or bool(ended) != bool(code):
        return f"pytest ended with exit code {ended} after {len(outcomes.failures)} failures, make with {code}"
    return None if outcomes.failures or outcomes.passed else "no test ran"
