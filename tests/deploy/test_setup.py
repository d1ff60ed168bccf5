"""`deploy/setup` creates the virtual environment of a clone."""

import re
import subprocess
import sys
from collections.abc import Iterable
from importlib.metadata import distribution, packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.code.source_files import FILES, ROOT

LOCKS = ROOT / "deploy" / "locks"
RUN = ("local.lock", "embedded.lock", "turns.lock")
ALL = ("all.lock",)
PINNED = re.compile(r"^([\w.-]+==[^\\\n]+)", re.MULTILINE)
IMPORTED = re.compile(r"^ *(?:from|import) (\w+)", re.MULTILINE)
PIP = "sys.modules.update(ensurepip=None, pip=sys); from importlib import metadata; metadata.version = "
"""Replaces ensurepip by nothing, pip by a module, and its version by what follows."""
FAULTS = {
    "sys.version_info = (3, 14, 0)": "the version is not supported",
    "sys.modules['venv'] = None": "no venv",
    "sys.modules['ensurepip'] = sys.modules['pip'] = None": "no ensurepip, and no pip",
    f"{PIP}lambda _: '22.2.1'": "no ensurepip, and pip 22.2.1, which is older than 22.3",
    f"{PIP}lambda _: metadata.distribution('absent')": (
        "no ensurepip, and a pip of unknown version, as it has no metadata"
    ),
}


def _script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def _setup(venv: Path, *arguments: str, python: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [ROOT / "deploy" / "setup", venv, *arguments],
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", "PYTHON": python},
        capture_output=True,
        text=True,
        check=False,
    )


def _pinned(locks: Iterable[str]) -> dict[str, str]:
    """Return the version of each package in the lock files that this Python and system need."""
    pins = [Requirement(pin) for lock in locks for pin in PINNED.findall((LOCKS / lock).read_text())]
    return {
        canonicalize_name(pin.name): str(pin.specifier) for pin in pins if not pin.marker or pin.marker.evaluate()
    }


def _gigabytes(packages: Iterable[str]) -> float:
    """Return the size of installed packages and of what installs them."""
    files = [file for package in (*packages, "uv", "setuptools") for file in distribution(package).files or ()]
    return sum(file.size or 0 for file in files) / 1e9


@pytest.fixture
def faulty(tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """An interpreter that runs a statement when it starts."""
    (tmp_path / "sitecustomize.py").write_text(f"import sys; {request.param}\n")
    return str(_script(tmp_path / "python", f'PYTHONPATH={tmp_path} exec {sys.executable} "$@"'))


@pytest.mark.parametrize(("faulty", "fault"), FAULTS.items(), indirect=["faulty"])
def test_each_unsuitable_interpreter_is_named_with_what_it_lacks(tmp_path: Path, faulty: str, fault: str):
    setup = _setup(tmp_path / "venv", python=faulty)
    wanted, *found = setup.stderr.splitlines()
    assert setup.returncode == 1
    assert not setup.stdout
    assert wanted.startswith("parley: Python 3.11, 3.12 or 3.13 with ensurepip or pip is required")
    version = ".".join(map(str, sys.version_info[:3]))
    assert len(found) == 1
    assert re.fullmatch(
        rf"  \S+ \(Python {version}\): {re.escape(fault)}( \(apt install python3\.\d+-venv\))?", found[0]
    )
    assert not (tmp_path / "venv").exists()


def test_a_missing_interpreter_is_reported_with_the_package_that_has_one(tmp_path: Path):
    setup = _setup(tmp_path / "venv", python=str(tmp_path / "missing"))
    assert setup.returncode == 1
    assert setup.stderr.endswith("  none (on Debian and Ubuntu: apt install python3-venv)\n")


def test_an_interpreter_that_does_not_run_is_named_with_its_error(tmp_path: Path):
    broken = _script(tmp_path / "python", "echo first >&2; echo 'cannot load libpython' >&2; exit 127")
    setup = _setup(tmp_path / "venv", python=str(broken))
    assert setup.returncode == 1
    assert setup.stderr.splitlines()[1:] == [f"  {broken}: cannot be run: cannot load libpython"]


def test_the_next_interpreter_is_used_after_one_that_does_not_run(tmp_path: Path):
    broken = _script(tmp_path / "broken", "exit 1")
    suitable = _script(
        tmp_path / "python", f'[ "$1" = deploy/interpreter.py ] || echo "$1 $2" > {tmp_path}/used; exit 0'
    )
    _setup(tmp_path / "venv", python=f"{broken} {suitable}")
    assert (tmp_path / "used").read_text().startswith("-m ")


@pytest.fixture
def venv(tmp_path: Path) -> Path:
    """An environment that has an interpreter and uv, which is a script that prints what uv does."""
    _script(tmp_path / "venv" / "bin" / "python", f'exec {sys.executable} "$@"')
    _script(
        tmp_path / "venv" / "bin" / "uv",
        f'echo "$*" >> {tmp_path}/calls; echo "Downloading numpy (16.1MiB)" >&2; echo " Downloaded numpy" >&2\n'
        f'echo " + numpy==2.4.6" >&2; [ ! -e {tmp_path}/fault ] || {{ cat {tmp_path}/fault >&2; exit 2; }}',
    )
    return tmp_path / "venv"


@pytest.mark.parametrize(("arguments", "locks"), [((), RUN), (("all",), ALL)])
def test_an_installation_prints_its_beginning_and_its_end(venv: Path, arguments: tuple[str, ...], locks: list[str]):
    setup = _setup(venv, *arguments)
    assert setup.returncode == 0, setup.stderr
    assert not setup.stderr
    assert [line.partition(" ")[0] for line in setup.stdout.splitlines()] == ["parley:", "parley:"]
    calls = (venv.parent / "calls").read_text().splitlines()
    assert [re.findall(r"-r deploy/locks/(\S+)", call) for call in calls] == [["bootstrap.lock"], list(locks), []]


def test_a_failed_installation_prints_all_that_uv_reports(venv: Path):
    (venv.parent / "fault").write_text("error: no such package\n")
    setup = _setup(venv)
    assert setup.returncode == 1
    assert setup.stderr.splitlines()[-2:] == [" + numpy==2.4.6", "error: no such package"]
    assert "installed" not in setup.stdout.splitlines()[-1]


def test_what_runs_imports_only_packages_that_make_run_installs():
    installed, ours = packages_distributions(), {"parley", "setuptools"}
    allowed = _pinned((*RUN, "otel.lock")).keys() | ours
    files = [*FILES, *(ROOT / "deploy").rglob("*.py")]
    imported = {(module, file) for file in files for module in IMPORTED.findall(file.read_text())}
    lacking = {
        f"{file.relative_to(ROOT)}: {module}"
        for module, file in imported
        if module in installed and not {canonicalize_name(name) for name in installed[module]} & allowed
    }
    assert not lacking


def test_make_run_and_the_tests_use_the_same_versions():
    assert _pinned(RUN).items() < _pinned(ALL).items()


@pytest.mark.parametrize("locks", [RUN, ALL], ids=["run", "all"])
def test_the_documented_number_and_size_of_the_packages_are_true(locks: tuple[str, ...]):
    packages = _pinned(locks)
    readme = (ROOT / "README.md").read_text()
    counts = [int(number) for number in re.findall(r"(\d+) packages", readme)]
    sizes = [float(number) for number in re.findall(r"(?:they take|packages and) ([\d.]+) GB", readme)]
    at = (RUN, ALL).index(locks)
    assert counts[at] == pytest.approx(len(packages), rel=0.05)
    assert sizes[at] == pytest.approx(_gigabytes(packages), rel=0.06)
    announced = re.findall(r"([\d.]+) GB", (ROOT / "deploy" / "setup").read_text())
    assert float(announced[1 - at]) == sizes[at]
