"""Reads for operators, such as lists and reports, that a replica of the database can execute."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

import structlog

from storage.postgres.connection import Connection
from storage.postgres.database import Database, DatabaseHealth, open_database
from streams.wire.errors import DatabaseUnavailable, StoreError

log = structlog.get_logger()

T = TypeVar("T")

_CONNECTIONS = 5
_CONNECT_S = 2.0
_WAIT_S = 0.5
"""How long a read waits for the replica to have all that the primary had when the read began."""
_POLL_S = 0.02
# How many rows a filter matches decides which index is right. Without this, a statement that is executed often gets
# a plan for any values: it reads all newer rows for a page in the middle, and for values that few rows have.
_PLANNED = "set local plan_cache_mode = force_custom_plan; set local jit = off"
_SKIPPED_S = 10.0
_POSITION = "select pg_current_wal_lsn()::text"
_REACHED = "select pg_is_in_recovery() and pg_last_wal_replay_lsn() >= $1::text::pg_lsn"
"""Not true for a replica that was promoted: its positions are those of another history."""


class Reads:
    """Executes reads on the replica if there is one and it has all that the primary has, otherwise on the primary.

    So a read sees all that was committed before it began, also by the same operator. After a failure the replica is
    not used for 10 s. Only reads that are worth further round trips should be executed here, and none of users,
    whose requests need not depend on two servers. Each statement is planned for its values.
    """

    def __init__(self, primary: Database, replica: Database | None) -> None:
        self._primary = primary
        self._replica = replica
        self._skipped_until = float("-inf")

    async def read(self, query: Callable[[Connection], Awaitable[T]]) -> T:
        """Return the result of `query`, which only reads. It is repeated on the primary if the replica fails."""
        if self._replica is not None and time.monotonic() >= self._skipped_until:
            try:
                async with self._caught_up(self._replica) as conn:
                    return await _planned(conn, query)
            except StoreError as error:
                self._skipped_until = time.monotonic() + _SKIPPED_S
                log.warning("replica.skipped", cause=error.what)
        async with self._primary.connection() as conn:
            return await _planned(conn, query)

    @asynccontextmanager
    async def _caught_up(self, replica: Database) -> AsyncIterator[Connection]:
        async with self._primary.connection() as conn:
            position = await conn.fetchval(_POSITION)
        async with replica.connection() as conn:
            until = time.monotonic() + _WAIT_S
            while not await conn.fetchval(_REACHED, position):
                if time.monotonic() >= until:
                    raise DatabaseUnavailable("the replica lags behind, or is none")
                await asyncio.sleep(_POLL_S)
            yield conn


async def _planned(conn: Connection, query: Callable[[Connection], Awaitable[T]]) -> T:
    async with conn.transaction(readonly=True):
        await conn.execute(_PLANNED)
        return await query(conn)


@asynccontextmanager
async def open_reads(primary: Database, replica_url: str | None) -> AsyncIterator[Reads]:
    """Open the pool of the replica, which may be absent: it is connected to when it is first used."""
    if replica_url is None:
        yield Reads(primary, None)
        return
    async with open_database(
        replica_url,
        min_size=0,
        max_size=_CONNECTIONS,
        acquire_timeout_s=_CONNECT_S,
        health=DatabaseHealth(replica_url, store="replica"),
        pooled=True,  # It may have a pooler, too.
        variable="DATABASE_REPLICA_URL",
    ) as replica:
        yield Reads(primary, replica)
