"""Checks of installed packages: whether the version was tested, and which members the code needs but they lack."""

import inspect
import re
import tomllib
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from packaging.requirements import Requirement

from tests.code.source_files import ROOT

LOCKS = ("deploy/locks/all.lock", "deploy/locks/core.lock")


def version_fault(name: str) -> str | None:
    """Return what is wrong with the version range of package `name`, or with the versions that are installed."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (allowed,) = (
        requirement for requirement in map(Requirement, project["dependencies"]) if requirement.name == name
    )
    if not any(bound.operator.startswith("<") for bound in allowed.specifier):
        return f"pyproject.toml must have an upper bound for {name}, because the code depends on undocumented parts"
    found = {"installed": version(name)}
    for lock in LOCKS:
        pinned = re.search(rf"^{re.escape(name)}==(\S+)", (ROOT / lock).read_text(), re.MULTILINE)
        found[f"in {lock}"] = pinned.group(1) if pinned else "missing"
    wrong = {
        place: number for place, number in found.items() if number == "missing" or number not in allowed.specifier
    }
    return f"pyproject.toml allows {allowed}, but {name} is {wrong}" if wrong else None


def lacking(owner: Any, uses: Mapping[str, str]) -> list[str]:
    """Return a sentence for each name of `uses` that `owner` lacks. The values say what uses it."""
    return [f"{owner.__qualname__} has no {name}: {use}" for name, use in uses.items() if not hasattr(owner, name)]


def other_parameters(owner: type, expected: Mapping[str, tuple[str, ...]]) -> list[str]:
    """Return a sentence for each method of `owner` that is missing or has other parameters than `expected`."""
    found = {
        name: tuple(inspect.signature(getattr(owner, name)).parameters)[1:] if hasattr(owner, name) else None
        for name in expected
    }
    return [
        f"{owner.__qualname__}.{name} has the parameters {found[name]} and not {parameters}: see its override"
        for name, parameters in expected.items()
        if found[name] != parameters
    ]
