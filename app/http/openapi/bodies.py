"""Example bodies of requests: those of a row, or else those of `bodies.json`."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from app.http.paths import template_of
from app.http.rows.endpoint import Endpoint
from streams.wire.codec import loads

_BODIES = Path(__file__).parent / "bodies.json"
_SUMMARY = "An example"


@cache
def _further() -> Mapping[str, Any]:
    bodies: Mapping[str, Any] = loads(_BODIES.read_bytes())
    return bodies


def bodies_of(row: Endpoint) -> Mapping[str, Any]:
    """Return the example bodies of a row, by their descriptions: JSON values, or text if the body is chunked."""
    name = f"{row.method} {template_of(row.path)}"
    if row.docs.bodies or name not in _further():
        return row.docs.bodies
    return {_SUMMARY: _further()[name]}
