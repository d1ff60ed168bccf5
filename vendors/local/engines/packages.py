"""The packages that an engine requires, and the digests of their weights."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Package:
    """A package by its import name. `files` are its weights with their SHA-256."""

    name: str
    files: Mapping[str, str] = field(default_factory=dict)

    def folder(self) -> Path:
        """Return the folder of the package, which is not imported: some packages only contain weights."""
        spec = find_spec(self.name)
        if spec is None or not spec.submodule_search_locations:
            raise ModuleNotFoundError(self.name)
        return Path(next(iter(spec.submodule_search_locations)))

    def fault(self) -> str | None:
        """Return what is wrong with the package, or `None`. Reads all its weights."""
        if find_spec(self.name) is None:
            return f"install parley[local]: {self.name} is missing"
        for file, sha256 in self.files.items():
            path = self.folder() / file
            if not path.is_file():
                return f"the file {file} of {self.name} is missing"
            with path.open("rb") as weights:
                if hashlib.file_digest(weights, "sha256").hexdigest() != sha256:
                    return f"the file {file} of {self.name} has an unexpected SHA-256"
        return None


def first_fault(packages: Iterable[Package]) -> str | None:
    return next((fault for package in packages if (fault := package.fault()) is not None), None)
