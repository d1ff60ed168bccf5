"""The clients as apps get them: packed."""

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
from email import message_from_bytes
from pathlib import Path
from zipfile import ZipFile

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.code.source_files import ROOT

LOCK = ROOT / "deploy/locks/all.lock"
PYTHON = ROOT / "clients/python"
TYPESCRIPT = ROOT / "clients/typescript"
_BUILD_S = 150
_LOCKED = re.compile(r"^[a-z0-9-]+==.*(?:\n +.*)*\n", re.MULTILINE)
"""A package of a lock file, with its hashes."""


def build_wheel(folder: Path) -> Path:
    """Build the wheel of the Python client into an empty folder."""
    shutil.copytree(PYTHON, folder / "source", ignore=shutil.ignore_patterns("*.egg-info", "build", "__pycache__"))
    uv = Path(sys.executable).with_name("uv")
    build = ["build", "--quiet", "--wheel", "--offline", "--no-build-isolation", "--python", sys.executable]
    _run(uv, *build, "--out-dir", folder, folder / "source", cwd=folder)
    (built,) = folder.glob("*.whl")
    return built


def install_wheel(wheel: Path, folder: Path) -> Path:
    """Install the wheel of the Python client and what it requires, and nothing else. Return the interpreter.

    The packages are those of the lock file. uv has kept them in its cache since it made this environment; if it has
    not, the test is skipped.
    """
    venv.create(folder / ".venv", symlinks=True)
    python = folder / ".venv/bin/python"
    required = required_by(wheel)
    locked = [entry for entry in _LOCKED.findall(LOCK.read_text()) if entry.partition("==")[0] in required]
    (folder / "locked.txt").write_text("".join(locked))
    install = [Path(sys.executable).with_name("uv"), "pip", "install", "--offline", "--no-deps", "--python", python]
    try:
        _run(*install, "--require-hashes", "-r", folder / "locked.txt", cwd=folder)
    except AssertionError as error:
        if "No solution found" in str(error):
            pytest.skip("the cache of uv does not have the packages that the Python client requires")
        raise
    _run(*install, wheel, cwd=folder)
    _run(install[0], "pip", "check", "--python", python, cwd=folder)
    return python


def required_by(wheel: Path) -> set[str]:
    """Return the names of the packages that a wheel requires, and of those that they require."""
    with ZipFile(wheel) as archive:
        (metadata,) = [name for name in archive.namelist() if name.endswith("/METADATA")]
        found = message_from_bytes(archive.read(metadata)).get_all("Requires-Dist", [])
    waiting, seen = [(Requirement(text), "") for text in found], set()
    while waiting:
        requirement, extra = waiting.pop()
        if (requirement.marker and not requirement.marker.evaluate({"extra": extra})) or str(requirement) in seen:
            continue
        seen.add(str(requirement))
        needs = [Requirement(text) for text in importlib.metadata.requires(requirement.name) or []]
        waiting += [(needed, extra) for needed in needs for extra in {"", *requirement.extras}]
    return {canonicalize_name(Requirement(text).name) for text in seen}


def pack_typescript(folder: Path) -> Path:
    """Pack the TypeScript client, which is built, into an empty folder."""
    _run("npm", "pack", "--ignore-scripts", "--pack-destination", folder, cwd=TYPESCRIPT)
    (packed,) = folder.glob("*.tgz")
    return packed


def clone_clients(folder: Path) -> Path:
    """Copy what the clients need of a clone to a folder, because building a package writes into the clone."""
    generated = shutil.ignore_patterns("*.egg-info", "build", "__pycache__", "node_modules")
    for part in ("clients", "app/pages/static/client"):
        shutil.copytree(ROOT / part, folder / part, ignore=generated)
    shutil.copy2(ROOT / "Makefile", folder)
    (folder / "clients/typescript/node_modules").symlink_to(TYPESCRIPT / "node_modules")
    return folder


def without_network(cache: Path) -> dict[str, str]:
    """Return the environment in which npm and pip get other packages from this machine only.

    pip sees the packages of this environment as installed: those that the client requires, and setuptools.
    """
    programs = [Path(path).parent for path in (sys.executable, shutil.which("npm")) if path]
    return {
        "HOME": str(cache),
        "PATH": os.pathsep.join([*map(str, programs), os.defpath]),
        "PYTHONPATH": sysconfig.get_path("purelib"),
        "PIP_NO_INDEX": "1",
        "PIP_NO_BUILD_ISOLATION": "0",  # pip reads it as the value of `build_isolation`.
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "npm_config_offline": "true",
        "npm_config_audit": "false",
        "npm_config_update_notifier": "false",
    }


def _run(*command: str | Path, cwd: Path) -> None:
    done = subprocess.run(command, cwd=cwd, capture_output=True, timeout=_BUILD_S, check=False, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
