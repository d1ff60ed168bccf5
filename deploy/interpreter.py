"""Prints why the running interpreter cannot create the virtual environment, or nothing if it can.

`deploy/setup` runs this file with each interpreter that it finds, among them old ones.
"""

import re
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

_PIP = (22, 3)
"""The first version that installs into another environment (`--python`)."""


def fault() -> str:
    """Return what the interpreter lacks and how to install it, or an empty text."""
    major, minor = sys.version_info[:2]
    if not (3, 11) <= (major, minor) < (3, 14):
        return "the version is not supported"
    if find_spec("venv") is None:
        return f"no venv{_advice(minor)}"
    if find_spec("ensurepip") is None and (pip := _pip_fault()):
        return f"no ensurepip, and {pip}{_advice(minor)}"
    return ""


def _pip_fault() -> str:
    """Return why pip cannot be used, or an empty text."""
    if find_spec("pip") is None:
        return "no pip"
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415 - old versions of Python lack it

    try:
        found = version("pip")
    except PackageNotFoundError:
        return "a pip of unknown version, as it has no metadata"
    numbers = re.match(r"(\d+)\.(\d+)", found)
    if numbers is None or (int(numbers[1]), int(numbers[2])) < _PIP:
        return f"pip {found}, which is older than 22.3"
    return ""


def _advice(minor: int) -> str:
    """Name the package that has both modules. Debian and Ubuntu ship it separately from Python."""
    return f" (apt install python3.{minor}-venv)" if sys.prefix == "/usr" and shutil.which("apt") else ""


if __name__ == "__main__":
    found = fault()
    if found:
        print(f"{Path(sys.executable).resolve()} (Python {sys.version.split()[0]}): {found}")
