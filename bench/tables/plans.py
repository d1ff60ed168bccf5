"""What statements read: the plans that PostgreSQL has executed, with the buffers that they have used."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import asyncpg

from streams.wire.codec import dumps, loads

_SETTINGS = """
load 'auto_explain';
set auto_explain.log_min_duration = 0;
set auto_explain.log_analyze = on;
set auto_explain.log_buffers = on;
set auto_explain.log_timing = off;
set auto_explain.log_format = 'json';
set client_min_messages = 'log';
"""


@dataclass(slots=True)
class Reads:
    """What the calls of one function have read."""

    buffers: list[int] = field(default_factory=list)
    """Pages of 8 KiB, of each call."""
    times_ms: list[float] = field(default_factory=list)
    scanned: set[str] = field(default_factory=set)
    """The tables that a statement has read from their first row to their last one."""

    @property
    def most(self) -> int:
        return max(self.buffers, default=0)

    @property
    def typical_ms(self) -> float:
        return median(self.times_ms) if self.times_ms else 0


class Explained:
    """The plans of the statements that a connection executes."""

    def __init__(self, large: frozenset[str]) -> None:
        self._large = large
        self._plans: list[tuple[float, dict[str, Any]]] = []

    def add(self, _conn: Any, message: Any) -> None:
        head, found, plan = message.message.partition("plan:")
        if found:
            self._plans.append((float(head.removeprefix("duration: ").split()[0]), loads(plan)["Plan"]))

    async def take(self, reads: Reads) -> None:
        """Add the plans since the last call, which are those of one call of a function."""
        await asyncio.sleep(0)  # Messages are passed on by the loop.
        nodes = [node for _, plan in self._plans for node in _nodes(plan)]
        reads.times_ms.append(sum(duration_ms for duration_ms, _ in self._plans))
        reads.buffers.append(sum(_buffers(plan) for _, plan in self._plans))
        reads.scanned |= {
            node["Relation Name"]
            for node in nodes
            if "Seq Scan" in node["Node Type"] and node["Relation Name"] in self._large
        }
        self._plans.clear()


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from _nodes(child)


def _buffers(plan: dict[str, Any]) -> int:
    """A node counts the buffers of its children too."""
    return int(plan.get("Shared Hit Blocks", 0)) + int(plan.get("Shared Read Blocks", 0))


@asynccontextmanager
async def explaining(dsn: str, *, large: frozenset[str]) -> AsyncIterator[tuple[asyncpg.Connection, Explained]]:
    """Connect as the server does, and have all plans reported. `large` are the tables that must not be scanned."""
    conn = await asyncpg.connect(dsn)
    try:
        await conn.set_type_codec("jsonb", schema="pg_catalog", encoder=_text, decoder=loads)
        explained = Explained(large)
        await conn.execute(_SETTINGS)
        conn.add_log_listener(explained.add)
        yield conn, explained
    finally:
        await conn.close()


def _text(value: Any) -> str:
    return dumps(value).decode()
