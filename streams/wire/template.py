"""Render operators' templates. Only variables are supported: no functions and no loops."""

import re
from collections.abc import Mapping
from typing import Any

_VARIABLE = re.compile(r"\{\{\s*\.([A-Za-z0-9_]+(?:\.[A-Za-z0-9_]+)*)\s*\}\}")


def render(template: str, values: Mapping[str, Any]) -> str:
    """Replace each `{{.a.b}}` with `values["a"]["b"]`. Missing values, lists and objects become empty strings."""
    return _VARIABLE.sub(lambda variable: _text(values, variable[1].split(".")), template)


def _text(value: Any, path: list[str]) -> str:
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str | int | float) else ""
