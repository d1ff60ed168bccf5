"""The version of this server, which `pyproject.toml` states."""

import tomllib
from functools import cache
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed_version
from pathlib import Path

_PACKAGE = "parley"
_PROJECT = Path(__file__).parent.parent / "pyproject.toml"
"""Beside the code in a clone and in the container image. An installed wheel has the version in its metadata."""
VERSION_HEADER = "X-Parley-Version"
"""The header of all responses of the admin API that holds the version of the process that responds."""


@cache
def version() -> str:
    """Return the version, or `unknown` if the code was copied without `pyproject.toml`.

    The file comes first, because the metadata of a clone are those of the time when its packages were installed.
    """
    try:
        project = tomllib.loads(_PROJECT.read_text())["project"]
    except (OSError, KeyError, tomllib.TOMLDecodeError):
        project = {}
    if project.get("name") == _PACKAGE:
        return str(project["version"])
    try:
        return installed_version(_PACKAGE)
    except PackageNotFoundError:
        return "unknown"
