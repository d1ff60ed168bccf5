"""Checks of the addresses of payment platforms, when configs are written."""

import re
import string
from collections.abc import Iterator
from urllib.parse import unquote

from storage.configs.rules import Fault

_PATH = re.compile(r"(?:[a-z]+://[^/]*)?(?P<path>.*)", re.IGNORECASE | re.ASCII | re.DOTALL)
_PART = re.compile(r"[^/]+")
_VERSION = re.compile(r"(?:.*[/\\])?v[0-9]+", re.IGNORECASE | re.ASCII | re.DOTALL)
_NOTHING = string.whitespace + "./\\"
"""What may be around a version or after it, once it is decoded, so that the address still ends with the version."""


def versioned_url(base_url: str | None) -> Iterator[Fault]:
    """Yield a fault if the address ends with a version, because each path that is added to it begins with one.

    Dots and blanks at the end do not count. A host such as `v1`, after `https://`, is none.
    """
    if base_url is None or (found := _PATH.match(base_url)) is None:
        return
    parts = {
        part.start(): unquote(part[0]).strip(_NOTHING) for part in _PART.finditer(base_url, found.start("path"))
    }
    start, last = next(((start, part) for start, part in reversed(parts.items()) if part), (0, ""))
    if _VERSION.fullmatch(last):
        right = base_url[:start].rstrip("/")
        yield Fault("base_url", f"must be {right}: the server adds the version of the interface to it")
