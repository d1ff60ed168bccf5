"""The figures of all server processes. Each process publishes its own in Valkey, for the overview of operators."""

import time
from collections.abc import Mapping
from typing import Any

from storage.valkey.client import Valkey, map_errors
from streams.wire.codec import dumps, loads

STALE_S = 20.0
"""Age after which the figures of a process are ignored, because it has ended or cannot reach Valkey."""


async def publish(valkey: Valkey, process: str, figures: Mapping[str, Any]) -> None:
    """Replace the figures of a process. Raises `StoreError` if Valkey is unavailable."""
    with map_errors():
        await valkey.call("HSET", _key(valkey), process, dumps({"at": time.time(), **figures}))


async def remove(valkey: Valkey, process: str) -> None:
    """Remove the figures of a process that ends."""
    with map_errors():
        await valkey.call("HDEL", _key(valkey), process)


async def of_all(valkey: Valkey) -> dict[str, dict[str, Any]]:
    """Return the figures of all running processes. Figures of ended ones are deleted."""
    with map_errors():
        found = await valkey.client.hgetall(_key(valkey))
        figures = {_text(process): loads(raw) for process, raw in found.items()}
        oldest = time.time() - STALE_S
        if ended := [process for process, published in figures.items() if published["at"] < oldest]:
            await valkey.client.hdel(_key(valkey), *ended)
    return {process: published for process, published in figures.items() if process not in ended}


def _text(name: bytes | str) -> str:
    return name if isinstance(name, str) else name.decode()


def _key(valkey: Valkey) -> str:
    return valkey.key("figures", "processes")
