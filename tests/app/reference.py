"""Access to the operations of the OpenAPI document, and checks of values against its schemas."""

import json  # noqa: TID251 - an independent reader
import re
from collections.abc import Iterator
from typing import Any

from tests.peers.sse_client import SeenEvent

Document = dict[str, Any]
Operation = dict[str, Any]


def template(path: str) -> str:
    """Return an aiohttp path in OpenAPI's notation."""
    return re.sub(r"\{(\w+)(:[^{}]*)?\}", r"{\1}", path)


def operations(document: Document) -> Iterator[tuple[str, str, Operation]]:
    """Yield the method, path and content of all operations."""
    for path, found in document["paths"].items():
        for method, operation in found.items():
            yield method.upper(), path, operation


def values_of(node: Any, name: str) -> Iterator[Any]:
    """Yield all values of the key `name`, at any depth."""
    if isinstance(node, dict):
        if name in node:
            yield node[name]
        for value in node.values():
            yield from values_of(value, name)
    elif isinstance(node, list):
        for value in node:
            yield from values_of(value, name)


def check(document: Document, schema: dict[str, Any], value: Any) -> None:
    """Check that `value` conforms to `schema` and has only fields that it names or allows."""
    from jsonschema import Draft202012Validator  # noqa: PLC0415 - slow to import, for each worker of the tests

    closed = json.loads(json.dumps({**schema, "components": document["components"]}))
    for node in [closed, *_nodes(closed)]:
        if node.get("type") == "object" and "properties" in node:
            node.setdefault("additionalProperties", False)
    Draft202012Validator(closed).validate(value)


def _nodes(node: Any) -> Iterator[dict[str, Any]]:
    for value in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        if isinstance(value, dict):
            yield value
        yield from _nodes(value)


def check_events(document: Document, operation: Operation, seen: list[SeenEvent]) -> None:
    """Check that each event is documented and conforms to its schema."""
    reported = {event["event"]: event["data"] for event in operation["x-events"]}
    for event in seen:
        assert event.name in reported
        check(document, reported[event.name], {"content": event.content, "timestamp": event.timestamp})
