"""Sizes of tables and indexes as measured, and those of 100 million rows, which are calculated from them."""

from collections.abc import Sequence
from dataclasses import dataclass

import asyncpg

from bench.tables.filling import Filled

ROWS = 100_000_000
_GIB = 1024**3
_EDGE = 0.02
"""The part of an index with ordered keys that is in use: its last days, and the pages above its leaves."""


@dataclass(frozen=True, slots=True)
class Index:
    name: str
    bytes_per_row: float
    is_ordered: bool

    @property
    def memory_bytes(self) -> float:
        """What must be in memory of the index of 100 million rows."""
        return ROWS * self.bytes_per_row * (_EDGE if self.is_ordered else 1)

    def line(self) -> list[str]:
        in_use = "the end" if self.is_ordered else "all"
        return [f"`{self.name}`", f"{self.bytes_per_row:.0f}", gib(ROWS * self.bytes_per_row), in_use]


@dataclass(frozen=True, slots=True)
class Size:
    """A table. Its bytes include those of long values, which are stored beside it (TOAST)."""

    name: str
    rows: int
    bytes_per_row: float
    indexes: Sequence[Index]

    def line(self) -> list[str]:
        whole = sum(index.bytes_per_row for index in self.indexes)
        memory = sum(index.memory_bytes for index in self.indexes)
        return [
            f"`{self.name}`",
            f"{self.rows:,}",
            f"{self.bytes_per_row:,.0f}",
            f"{whole:,.0f}",
            f"{gib(ROWS * self.bytes_per_row)}",
            f"{gib(ROWS * whole)}",
            f"{gib(memory)}",
        ]


def gib(size: float) -> str:
    return f"{size / _GIB:,.1f}"


_INDEXES = """
select c.relname as name, sum(pg_relation_size(leaf.indexrelid))::float8 as size
from pg_index i join pg_class c on c.oid = i.indexrelid,
    lateral (select i.indexrelid union all select relid from pg_partition_tree(i.indexrelid) where isleaf)
    as leaf (indexrelid)
where i.indrelid = $1::regclass group by 1 order by 2 desc
"""
_TABLE = """
select sum(pg_table_size(leaf.oid))::float8 from (
    select $1::regclass as oid union select relid from pg_partition_tree($1::regclass)) as leaf
"""


async def size_of(conn: asyncpg.Connection, table: Filled) -> Size:
    rows = await conn.fetchval(f"select count(*) from {table.name}")  # noqa: S608 - the names are ours
    indexes = [
        Index(row["name"], row["size"] / rows, row["name"] in table.ordered)
        for row in await conn.fetch(_INDEXES, table.name)
    ]
    return Size(table.name, rows, await conn.fetchval(_TABLE, table.name) / rows, indexes)
