"""PostgreSQL: the pool, transactions, and the one place where its faults become ours."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import asyncpg

from storage.availability import Availability
from storage.pool import ConnectionPool
from storage.postgres_causes import AWAY, Locked, forbids_writing, is_outage, store_error
from streams.wire.errors import StoreAway

__all__ = ["Connection", "Database", "Locked", "map_errors", "open_database"]

Connection = Any  # asyncpg's pool hands out a proxy of its Connection

_CLOSE_S = 5
_PROBE_S = 10.0
_HOLD_S = 5.0
"""So long a failed write says that the next would fail too, even if a probe succeeds."""
_PROBE = """
create temp table write_probe on commit drop as select md5(i::text) from generate_series(1, 2000) i
"""
"""Extends a file, which a small write into an existing one may not have to."""


class map_errors:  # noqa: N801 - used as a function is
    """Turn a fault of PostgreSQL into `database`: 503 when it cannot be used, 500 when it refused."""

    def __enter__(self) -> None: ...

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, Exception):
            _raise_ours(error)


def _raise_ours(error: Exception) -> None:
    if (ours := store_error(error)) is not None:
        raise ours from error


class _Lent:
    """A connection for a block."""

    __slots__ = ("_condition", "_conn", "_pool")

    def __init__(self, connections: ConnectionPool, condition: "Condition") -> None:
        self._pool = connections
        self._condition = condition

    async def __aenter__(self) -> Connection:
        try:
            self._conn = await self._pool.acquire()
        except Exception as error:
            self._condition.failed(error)
            raise
        return self._conn

    async def __aexit__(self, *raised: object) -> None:
        with map_errors():
            await self._pool.release(self._conn, discard=raised[0] is not None)
        if isinstance(error := raised[1], Exception):
            self._condition.failed(error)
        elif error is None:
            self._condition.availability.worked()


class Condition:
    """What this process knows of the database from all its pools."""

    def __init__(self) -> None:
        self.availability = Availability("postgres")
        self.unwritable: tuple[str, float] | None = None
        """Why the database refused a write, and when it last did."""

    def failed(self, error: Exception) -> None:
        """Remember what `error` says about the database, and raise it as ours if it is PostgreSQL's."""
        if (ours := store_error(error)) is None:
            return
        if is_outage(error):
            self.availability.failed(ours.what, error, partly=forbids_writing(error))
        if forbids_writing(error):
            self.unwritable = ours.what, time.monotonic()
        raise ours from error


class Database:
    """A pool of connections. Functions of `storage` take a connection first."""

    def __init__(self, connections: ConnectionPool, condition: Condition) -> None:
        self.condition = condition
        self._pool = connections
        self._probed_at = float("-inf")

    def connection(self) -> AbstractAsyncContextManager[Connection]:
        """A connection for single statements, each its own transaction."""
        return _Lent(self._pool, self.condition)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        """A connection inside a transaction: committed at the end of the block, rolled back by an exception."""
        async with self.connection() as conn, conn.transaction():
            yield conn

    async def ping(self) -> None:
        """Raise `StoreError` where the database does not answer or could not be written to in the last seconds.

        It is tried whether it takes a write: every ten seconds, and at each call after it has refused one.
        """
        condition = self.condition
        async with self.connection() as conn:
            await conn.fetchval("select 1")
            if condition.unwritable is not None or time.monotonic() >= self._probed_at + _PROBE_S:
                await _probe(conn)
                self._probed_at = time.monotonic()
        if condition.unwritable is not None:
            cause, at = condition.unwritable
            if time.monotonic() < at + _HOLD_S:
                raise StoreAway(cause, error_type="database", retry_after_s=1)
            condition.unwritable = None


async def _probe(conn: Connection) -> None:
    """Write something, and undo it."""
    transaction = conn.transaction()
    await transaction.start()
    try:
        await conn.execute(_PROBE)
    finally:
        await transaction.rollback()


async def _as_it_is(_conn: Connection) -> None:
    """No statement where a connection goes back: none of ours changes its session or listens."""


@asynccontextmanager
async def open_database(
    dsn: str,
    *,
    min_size: int = 1,
    max_size: int = 20,
    acquire_timeout_s: float = 10,
    command_timeout_s: float = 15,
    lock_timeout_s: float | None = None,
    condition: Condition | None = None,
) -> AsyncIterator[Database]:
    """Connect to `dsn` (`postgresql://…`) and close every connection at the end.

    `lock_timeout_s`: for a row that another holds a statement waits so long (`Locked`), else as for anything.
    `condition`: that of another pool of the same database.
    """
    with map_errors():
        pool = await asyncpg.create_pool(
            dsn,
            min_size=min_size,
            max_size=max_size,
            command_timeout=command_timeout_s,
            timeout=acquire_timeout_s,
            reset=_as_it_is,
            server_settings={} if lock_timeout_s is None else {"lock_timeout": f"{lock_timeout_s * 1000:.0f}ms"},
        )
    connections = ConnectionPool(pool, most=max_size, wait_s=acquire_timeout_s)
    try:
        yield Database(connections, condition or Condition())
    finally:
        try:
            async with asyncio.timeout(_CLOSE_S):
                await connections.close()
                await pool.close()
        except (*AWAY, asyncpg.PostgresError):
            pool.terminate()
