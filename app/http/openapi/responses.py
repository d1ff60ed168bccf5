"""Example responses of the API reference, as a development server has sent them to the examples for curl."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from app.http.paths import template_of
from app.http.rows.endpoint import Endpoint
from streams.wire.codec import loads

RECORDED = Path(__file__).parent / "responses.json"
"""Written by `deploy/reference/responses.py`."""


@cache
def _recorded() -> Mapping[str, Any]:
    recorded: Mapping[str, Any] = loads(RECORDED.read_bytes())
    return recorded


def response_name(row: Endpoint) -> str:
    """Return the name of the operation whose response a row has: its S2S form and deprecated paths repeat it."""
    return f"{row.method} {template_of(row.original.path)}"


def with_response(operation: dict[str, Any], row: Endpoint) -> None:
    """Add the recorded response of a row to one of its operations."""
    if (found := _recorded().get(response_name(row))) is None:
        return
    response = operation["responses"][str(found["status"])]
    if "location" in found:
        location = {"schema": {"type": "string"}, "example": found["location"]}
        response["headers"] = {**response["headers"], "Location": location}
    if "body" in found:
        content = response.setdefault("content", {})
        name = "*/*" if "*/*" in content else found["media_type"]
        content[name] = {**content.get(name, {}), "example": found["body"]}
