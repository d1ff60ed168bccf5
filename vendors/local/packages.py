"""What must be installed for an engine, and the digests of the weights that were tried."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Package:
    """An installed package by its import name; `files` are its weights with their SHA-256."""

    name: str
    files: Mapping[str, str] = field(default_factory=dict)

    def folder(self) -> Path:
        """Where it is installed. It is not imported: some are wanted for their weights alone."""
        spec = find_spec(self.name)
        if spec is None or not spec.submodule_search_locations:
            raise ModuleNotFoundError(self.name)
        return Path(next(iter(spec.submodule_search_locations)))

    def fault(self) -> str | None:
        """What is wrong with it, if anything: reads every file of weights to its end."""
        if find_spec(self.name) is None:
            return f"install parley[local]: {self.name} is missing"
        for file, sha256 in self.files.items():
            path = self.folder() / file
            if not path.is_file():
                return f"{self.name} lacks its file {file}"
            with path.open("rb") as weights:
                if hashlib.file_digest(weights, "sha256").hexdigest() != sha256:
                    return f"the file {file} of {self.name} is not the one that is known: its SHA-256 differs"
        return None


def first_fault(packages: Iterable[Package]) -> str | None:
    return next((fault for package in packages if (fault := package.fault()) is not None), None)
