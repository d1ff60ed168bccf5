"""Fills the tables in minutes: without indexes, which are built afterwards."""

import asyncio

import asyncpg

from bench.console.rows import BUSY, BUSY_ROWS, FUNCTIONS, PARTS, Part, Size
from bench.console.values import Values, read_values
from bench.tables.filling import prepare

_BATCH = 500_000
_MIN_BUSY_ROWS = 120
_BUSY_USER = 7003
"""The number of the busiest user, or that of the last user of `default` if there are fewer."""
_LEAVES = """
select relid::regclass::text as leaf from pg_partition_tree($1::text::regclass) where isleaf
union select $1::text where not exists (select from pg_partition_tree($1::text::regclass))
"""
# PostgreSQL does not add rows to an index that is not ready. `reindex` builds it, and marks it as ready.
_PAUSE = """
update pg_index set indisready = false, indisvalid = false
where indrelid = any($1::text[]::regclass[]) and indisready
"""


async def fill(conn: asyncpg.Connection, size: Size) -> Values:
    """Fill a migrated database with configs. Return values of its rows. The role of `conn` is a superuser."""
    await prepare(conn)
    await conn.execute(f"{FUNCTIONS} set maintenance_work_mem = '1GB'; set synchronous_commit = off")
    leaves = {leaf: None for part in PARTS for leaf in await _leaves(conn, part.table)}
    await conn.execute(_PAUSE, [*leaves])
    for part in PARTS:
        await _insert(conn, part, size)
    busy = await conn.fetchval("select pg_temp.uid($1, $2)", min(_BUSY_USER, size.users // 10 * 10 - 7), size.users)
    for statement in BUSY:
        await conn.execute(statement, busy, max(_MIN_BUSY_ROWS, int(size.users * BUSY_ROWS)))
    for leaf in leaves:
        await conn.execute(f"reindex table {leaf}")
        await conn.execute(f"vacuum (analyze) {leaf}")
    await conn.execute("analyze")
    await conn.execute("checkpoint")
    return await read_values(conn, size, busy=busy)


async def _leaves(conn: asyncpg.Connection, table: str) -> list[str]:
    return [row["leaf"] for row in await conn.fetch(_LEAVES, table)]


async def _insert(conn: asyncpg.Connection, part: Part, size: Size) -> None:
    count, statement = part.rows(size), part.fill.replace("{users}", str(size.users))
    for first in range(1, count + 1, _BATCH):
        await conn.execute(statement, first, min(first + _BATCH - 1, count), count)
        await asyncio.sleep(0)
