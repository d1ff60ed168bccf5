"""Render operators' templates. Only variables are supported: no functions and no loops."""

import re
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

_VARIABLE = re.compile(r"\{\{\s*\.([A-Za-z0-9_]+(?:\.[A-Za-z0-9_]+)*)\s*\}\}")


def render(template: str, values: Mapping[str, Any]) -> str:
    """Replace each `{{.a.b}}` with `values["a"]["b"]`. Missing values, lists and objects become empty strings."""
    return _VARIABLE.sub(lambda variable: _text(values, variable[1].split(".")), template)


def render_html(template: str, values: Mapping[str, Any]) -> str:
    """Like `render`, but escape the values for HTML."""
    return _VARIABLE.sub(lambda variable: escape(_text(values, variable[1].split("."))), template)


def variables_of(template: str) -> Iterator[str]:
    """Yield the dotted names of the variables of a template, each as often as it occurs."""
    return (variable[1] for variable in _VARIABLE.finditer(template))


def _text(value: Any, path: list[str]) -> str:
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str | int | float) else ""
