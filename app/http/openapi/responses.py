"""Example responses of the API reference, as a development server has sent them to the examples for curl."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from streams.wire.codec import loads

RECORDED = Path(__file__).parent / "responses.json"
"""Written by `deploy/reference/responses.py`."""


@cache
def _recorded() -> Mapping[str, Any]:
    recorded: Mapping[str, Any] = loads(RECORDED.read_bytes())
    return recorded


def with_response(operation: dict[str, Any], name: str) -> None:
    """Add the recorded response to the operation `name`, such as `GET /bp/user/me`."""
    if name in _recorded():
        content = operation["responses"]["200"]["content"]["application/json"]
        content["example"] = _recorded()[name]
