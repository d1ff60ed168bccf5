"""Reads event streams like a client, independently of the server's own code."""

import json  # noqa: TID251 - an independent client
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from aiohttp import ClientResponse


@dataclass(frozen=True)
class SeenEvent:
    id: int | None
    name: str
    content: Any
    timestamp: int


async def events(response: ClientResponse) -> AsyncIterator[SeenEvent]:
    assert response.status == 200, await response.text()
    assert response.content_type == "text/event-stream"
    fields: dict[str, str] = {}
    async for line in response.content:
        text = line.decode().rstrip("\n")
        if text:
            name, _, value = text.partition(": ")
            fields[name] = value
        elif fields:
            data = json.loads(fields["data"])
            event_id = int(fields["id"]) if "id" in fields else None
            yield SeenEvent(event_id, fields["event"], data["content"], data["timestamp"])
            fields = {}


async def all_events(response: ClientResponse) -> list[SeenEvent]:
    return [event async for event in events(response)]


def named(seen: list[SeenEvent], name: str) -> list[Any]:
    """Return the contents of all events with this name."""
    return [event.content for event in seen if event.name == name]
