"""The renderer of operators' templates: dotted lookup only, no functions, no loops."""

import re
from collections.abc import Mapping
from typing import Any

_PLACE = re.compile(r"\{\{\s*\.([A-Za-z0-9_]+(?:\.[A-Za-z0-9_]+)*)\s*\}\}")


def render(template: str, values: Mapping[str, Any]) -> str:
    """`{{.a.b}}` becomes the text of that value; what is missing or no scalar renders empty."""
    return _PLACE.sub(lambda place: _text(values, place[1].split(".")), template)


def _text(value: Any, path: list[str]) -> str:
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str | int | float) else ""
