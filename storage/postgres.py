"""PostgreSQL: the pool, transactions, and the one place where its faults become ours."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import asyncpg

from storage.lending import Lending
from streams.wire.errors import StoreAway, StoreError

Connection = Any  # asyncpg's pool hands out a proxy of its Connection

_CLOSE_S = 5
_AWAY = (
    OSError,
    TimeoutError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # of a connection whose server has just ended it
    asyncpg.PostgresConnectionError,
    asyncpg.InsufficientResourcesError,
    asyncpg.OperatorInterventionError,
    asyncpg.ReadOnlySQLTransactionError,  # of a server that another is taking over from
    asyncpg.TransactionRollbackError,
)


class Locked(StoreError):
    """Another holds a row, for longer than this connection waits for one."""


class map_errors:  # noqa: N801 - used as a function is
    """Turn a fault of PostgreSQL into `database`: 503 when it is away, 500 when it refused."""

    def __enter__(self) -> None: ...

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, Exception):
            _raise_ours(error)


def _raise_ours(error: Exception) -> None:
    if isinstance(error, asyncpg.UniqueViolationError):
        return
    if isinstance(error, _AWAY):
        raise StoreAway("the database is not reachable", error_type="database", retry_after_s=1) from error
    if isinstance(error, asyncpg.LockNotAvailableError):
        raise Locked("another holds the row", error_type="database") from error
    if isinstance(error, (asyncpg.UndefinedTableError, asyncpg.UndefinedColumnError)):
        raise StoreError(
            "the database is not up to date: run `python -m app migrate`", error_type="database"
        ) from error
    if isinstance(error, asyncpg.PostgresError):
        raise StoreError("the database refused a statement", error_type="database") from error


class _Lent:
    """A connection for a block."""

    __slots__ = ("_conn", "_lending")

    def __init__(self, lending: Lending) -> None:
        self._lending = lending

    async def __aenter__(self) -> Connection:
        with map_errors():
            self._conn = await self._lending.take()
        return self._conn

    async def __aexit__(self, *raised: object) -> None:
        with map_errors():
            await self._lending.give(self._conn, sound=raised[0] is None)
        if isinstance(error := raised[1], Exception):
            _raise_ours(error)


class Database:
    """A pool of connections. Functions of `storage` take a connection first."""

    def __init__(self, lending: Lending) -> None:
        self._lending = lending

    def connection(self) -> AbstractAsyncContextManager[Connection]:
        """A connection for single statements, each its own transaction."""
        return _Lent(self._lending)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        """A connection inside a transaction: committed at the end of the block, rolled back by an exception."""
        async with self.connection() as conn, conn.transaction():
            yield conn

    async def ping(self) -> None:
        async with self.connection() as conn:
            await conn.fetchval("select 1")


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
) -> AsyncIterator[Database]:
    """Connect to `dsn` (`postgresql://…`) and close every connection at the end.

    `lock_timeout_s`: for a row that another holds a statement waits so long (`Locked`), else as for anything.
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
    lending = Lending(pool, most=max_size, wait_s=acquire_timeout_s)
    try:
        yield Database(lending)
    finally:
        try:
            async with asyncio.timeout(_CLOSE_S):
                await lending.close()
                await pool.close()
        except (*_AWAY, asyncpg.PostgresError):
            pool.terminate()
