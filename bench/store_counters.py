"""The counters of Valkey and PostgreSQL: commands, transactions, statements, rows, bytes.

They are read as a flat mapping from name to number, so that any two readings can be subtracted. The names of the
counters of commands begin with `COMMAND`. A command that a script executes is counted like one that a client sends.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import asyncpg
from redis.asyncio import Redis

from deploy.stores import Stores, embedded_stores

Reading = Mapping[str, float]

COMMAND = "valkey command "
FLUSHED_S = 11.0
"""The time after which an idle session of PostgreSQL has reported all its transactions: 10 s, and some more."""
_POSTGRES = """
select xact_commit + xact_rollback as transactions,
    tup_inserted + tup_updated + tup_deleted as rows,
    (select sum(calls) from pg_stat_statements where dbid = d.datid and query not like '%pg_stat_statements%')
        as statements,
    pg_current_wal_lsn() - '0/0'::pg_lsn as wal,
    pg_database_size(d.datid) as stored
from pg_stat_database d where datname = current_database()
"""


async def count_statements(data_dir: Path) -> None:
    """Make the PostgreSQL whose data will be in `data_dir` load `pg_stat_statements`, which needs a start."""
    async with embedded_stores(data_dir) as stores:
        conn = await asyncpg.connect(stores.database_url)
        await conn.execute("alter system set shared_preload_libraries = 'pg_stat_statements'")
        await conn.execute("create extension pg_stat_statements")
        await conn.close()


@dataclass(frozen=True, slots=True)
class StoreCounters:
    _postgres: asyncpg.Connection
    _valkey: "Redis[str]"

    async def read(self) -> Reading:
        """Return all counters. Reading adds a few to them, which an idle interval shows too."""
        row = await self._postgres.fetchrow(_POSTGRES)
        assert row is not None, "the current database has a row"
        stats, commands = await self._valkey.info("stats"), await self._valkey.info("commandstats")
        found = {f"postgres {name}": float(value or 0) for name, value in row.items()}
        found["valkey in"] = float(stats["total_net_input_bytes"])
        found["valkey out"] = float(stats["total_net_output_bytes"])
        found["valkey stored"] = await self.used_memory()
        for name, figures in commands.items():
            found[COMMAND + name.removeprefix("cmdstat_").replace("|", " ")] = float(figures["calls"])
        return found

    async def used_memory(self) -> float:
        return float((await self._valkey.info("memory"))["used_memory"])

    async def wait_for_jobs(self, due: str, *, within_s: float) -> None:
        """Wait until the query `due` returns 0."""
        async with asyncio.timeout(within_s):
            while await self._postgres.fetchval(due):  # noqa: ASYNC110 - no event for the work of other processes
                await asyncio.sleep(0.2)


@asynccontextmanager
async def open_counters(stores: Stores) -> AsyncIterator[StoreCounters]:
    """Connect to stores that were prepared by `count_statements`."""
    conn = await asyncpg.connect(stores.database_url)
    try:
        async with Redis.from_url(stores.redis_url, decode_responses=True) as valkey:
            yield StoreCounters(conn, valkey)
    finally:
        await conn.close()


def difference(before: Reading, after: Reading) -> Reading:
    return {name: value - before.get(name, 0.0) for name, value in after.items()}
