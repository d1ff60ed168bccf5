"""The clients as apps get them: packed."""

import shutil
import subprocess
import sys
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


def _run(*command: str | Path, cwd: Path) -> None:
    done = subprocess.run(command, cwd=cwd, capture_output=True, timeout=_BUILD_S, check=False, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
