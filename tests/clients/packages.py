"""The clients as apps get them: packed."""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from tests.code.source_files import ROOT

PYTHON = ROOT / "clients/python"
TYPESCRIPT = ROOT / "clients/typescript"
_BUILD_S = 150


def build_wheel(folder: Path) -> Path:
    """Build the wheel of the Python client into an empty folder."""
    shutil.copytree(PYTHON, folder / "source", ignore=shutil.ignore_patterns("*.egg-info", "build", "__pycache__"))
    uv = Path(sys.executable).with_name("uv")
    build = ["build", "--quiet", "--wheel", "--offline", "--no-build-isolation", "--python", sys.executable]
    _run(uv, *build, "--out-dir", folder, folder / "source", cwd=folder)
    (built,) = folder.glob("*.whl")
    return built


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
