"""Reads form-encoded fields of Stripe's API: `items[0][price]=p` becomes `{"items": [{"price": "p"}]}`."""

import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import parse_qsl

_NAME = re.compile(r"([^\[\]]+)((?:\[[^\[\]]*\])*)")
_KEY = re.compile(r"\[([^\[\]]*)\]")


def decoded(text: str) -> dict[str, Any]:
    """Return the fields. Raises `ValueError` for a malformed name."""
    tree: dict[str, Any] = {}
    for name, value in parse_qsl(text, keep_blank_values=True):
        match = _NAME.fullmatch(name)
        if match is None:
            raise ValueError(name)
        _insert(tree, [match[1], *_KEY.findall(match[2])], value)
    return {name: _with_lists(value) for name, value in tree.items()}


def _insert(tree: dict[str, Any], path: list[str], value: str) -> None:
    for key in path[:-1]:
        inner = tree.setdefault(key, {})
        if not isinstance(inner, dict):
            raise ValueError(key)  # noqa: TRY004 - it is the form that is wrong
        tree = inner
    last = path[-1] or str(len(tree))
    tree[last] = value


def _with_lists(value: Any) -> Any:
    """Replace objects whose keys are 0, 1, … with lists."""
    if not isinstance(value, dict):
        return value
    items = {key: _with_lists(item) for key, item in value.items()}
    return list(items.values()) if _is_range(items) else items


def _is_range(keys: Iterable[str]) -> bool:
    return list(keys) == [str(index) for index, _ in enumerate(keys)]
