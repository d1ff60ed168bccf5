"""Checks of the addresses of payment platforms, when configs are written."""

import re
from collections.abc import Iterator

from storage.configs.rules import Fault

_VERSION = re.compile(r"(?<!:)(?<!:/)/+v[0-9]+/*$", re.IGNORECASE | re.ASCII)
"""The end of an address whose last part is a version. A host such as `v1`, after `https://`, is none."""


def versioned_url(base_url: str | None) -> Iterator[Fault]:
    """Yield a fault if the address ends with a version, because each path that is added to it begins with one."""
    if base_url is not None and (version := _VERSION.search(base_url)):
        right = base_url[: version.start()]
        yield Fault("base_url", f"must be {right}: the server adds the version of the interface to it")
