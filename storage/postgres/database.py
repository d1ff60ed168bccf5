"""PostgreSQL: connections, transactions, and the conversion of its errors to `StoreError`."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import asyncpg

from storage.availability import Availability
from storage.postgres.causes import (
    UNAVAILABLE,
    DuplicateRow,
    Locked,
    TransactionConflict,
    forbids_writing,
    is_outage,
    store_error,
    wrong_option,
)
from storage.postgres.connection import Connection
from storage.postgres.hosts import Hosts
from storage.postgres.pool import ConnectionPool
from storage.store_urls import ENCODED, has_encoded_password
from streams.kept_errors import copy_of
from streams.wire.codec import dumps
from streams.wire.errors import DatabaseError, DatabaseUnavailable
from streams.wire.long_integers import loads_exact

__all__ = [
    "Connection",
    "Database",
    "DuplicateRow",
    "Locked",
    "TransactionConflict",
    "map_errors",
    "on_conflict",
    "open_database",
]

_CLOSE_S = 5
_USER_REFUSED = "28000"
"""This SQLSTATE has several reasons, which only the message of the server distinguishes."""
_JSONB_VERSION = b"\x01"
"""The first byte of a `jsonb` in the binary format. The JSON text follows it."""
_WITHOUT_SESSION: dict[str, Any] = {"statement_cache_size": 0}
"""Options of a connection through a pooler in transaction mode, whose next transaction may be in another session,
where prepared statements are missing. Without its cache, asyncpg parses a statement again, without a name, in the
same round trip in which it executes it."""
_PROBE_S = 10.0
_HOLD_S = 5.0
"""How long the database counts as not writable after a failed write, even if a probe succeeds."""
_PROBE = """
set local temp_tablespaces = '';
set local work_mem = '64kB';
delete from processes where false;
select count(*) from unnest(array_fill(repeat('x', 1024), array[128]))
"""
"""Fails if the server is read-only, or if the database's disk is full. One round trip, and one transaction.

A read-only server refuses the `delete`, although it deletes nothing. The rows of the `select` exceed `work_mem`, so
PostgreSQL writes them to a temporary file of 130 kB, on the disk of the data. That costs 2 ms, no WAL and no
catalog row; a temporary table costs 10 ms, 11 kB of WAL, and 5 kB of dead catalog rows that are left to autovacuum.

A small write needs no space on a full disk, because it fits into a page or a WAL segment that exists. So
`pg_logical_emit_message` succeeds there, even with 130 kB, and it succeeds in a read-only transaction. If the WAL
is on another disk that is full, PostgreSQL stops, and the database is not reachable.
"""


class map_errors:  # noqa: N801 - used like a function
    """Convert errors of PostgreSQL to `StoreError`, as `store_error` does."""

    def __enter__(self) -> None: ...

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, Exception):
            _raise_converted(error)


class on_conflict:  # noqa: N801 - used like a function
    """Raise `error()` if the block violates the unique constraint or index `constraint`."""

    def __init__(self, constraint: str, error: Callable[[], Exception]) -> None:
        self._constraint = constraint
        self._error = error

    def __enter__(self) -> None: ...

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, asyncpg.UniqueViolationError) and error.constraint_name == self._constraint:
            raise self._error() from None


def _raise_converted(error: Exception) -> None:
    if (converted := store_error(error)) is not None:
        raise copy_of(converted) from error


class _AcquiredConnection:
    """Acquires a connection for the duration of a block."""

    __slots__ = ("_conn", "_generation", "_health", "_pool")

    def __init__(self, pool: ConnectionPool, health: "DatabaseHealth") -> None:
        self._pool = pool
        self._health = health

    async def __aenter__(self) -> Connection:
        try:
            self._conn = await self._pool.acquire()
            self._generation = self._pool.generation
        except Exception as error:
            self._health.failed(error)
            _raise_converted(error)
            raise
        return self._conn

    async def __aexit__(self, *raised: object) -> None:
        with map_errors():
            discard = raised[0] is not None or self._generation != self._pool.generation
            await self._pool.release(self._conn, discard=discard)
            if isinstance(raised[1], asyncpg.ReadOnlySQLTransactionError):
                # The server is a standby, or was the primary until now. Another one may be at its address by now.
                await self._pool.renew()
        if isinstance(error := raised[1], Exception):
            self._health.failed(error)
            _raise_converted(error)
        elif error is None:
            self._health.availability.worked()


@asynccontextmanager
async def _limited(acquired: _AcquiredConnection, lock_timeout: str) -> AsyncIterator[Connection]:
    async with acquired as conn, conn.transaction():
        await conn.execute(f"set local lock_timeout = '{lock_timeout}'")
        yield conn


class DatabaseHealth:
    """The state of the database, as the calls of all pools of this process have found it."""

    def __init__(self, dsn: str, *, store: str = "postgres") -> None:
        self.availability = Availability(store, location=location(dsn))
        self.unwritable: tuple[str, float] | None = None
        """Why the database last refused a write, and when; `None` if writes succeed."""

    def failed(self, error: Exception) -> None:
        """Record what `error` means for the database, if it comes from PostgreSQL."""
        if (converted := store_error(error)) is None:
            return
        if is_outage(error):
            self.availability.failed(converted.what, error, partly=forbids_writing(error))
        if forbids_writing(error):
            self.unwritable = converted.what, time.monotonic()


class Database:
    """A pool of connections. Functions in `storage` that execute SQL take a connection as first argument."""

    def __init__(
        self, connections: ConnectionPool, health: DatabaseHealth, *, lock_timeout: str | None = None
    ) -> None:
        """`lock_timeout`: a limit that is set in each transaction, because it cannot be set for the connection."""
        self.health = health
        self._lock_timeout = lock_timeout
        self._pool = connections
        self._probed_at = float("-inf")

    def connection(self) -> AbstractAsyncContextManager[Connection]:
        """Acquire a connection for single statements, each in a separate transaction.

        With a `lock_timeout` that is set in each transaction, they share one.
        """
        acquired = _AcquiredConnection(self._pool, self.health)
        return acquired if self._lock_timeout is None else _limited(acquired, self._lock_timeout)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        """Acquire a connection in a transaction, committed at the end of the block and rolled back on an error."""
        async with self.connection() as conn, conn.transaction():
            yield conn

    async def ping(self) -> None:
        """Raise `StoreError` if the database does not answer, or if a write has failed in the last seconds.

        Every ten seconds, and at each call after a failed write, a probe checks if the database accepts writes.
        """
        health = self.health
        async with self.connection() as conn:
            await conn.fetchval("select 1")
            if health.unwritable is not None or time.monotonic() >= self._probed_at + _PROBE_S:
                await conn.execute(_PROBE)
                self._probed_at = time.monotonic()
        if health.unwritable is not None:
            cause, refused_at = health.unwritable
            if time.monotonic() < refused_at + _HOLD_S:
                raise DatabaseUnavailable(cause)
            health.unwritable = None


def location(dsn: str) -> str:
    """Describe the target of `dsn`, for operators. The password is left out."""
    parts = urlsplit(dsn)
    options = dict(parse_qsl(parts.query))
    hosts = parts.netloc.rpartition("@")[2]
    if "," not in hosts:
        host = options.get("host") or parts.hostname or "the default socket"
        hosts = f"{host}:{options.get('port') or parts.port or 5432}"
    name = unquote(parts.path.removeprefix("/")) or options.get("dbname", "")
    user = unquote(parts.username or "") or options.get("user", "")
    return hosts + (f", database {name}" if name else "") + (f", user {user}" if user else "")


async def _set_codecs(conn: asyncpg.Connection) -> None:
    """Convert between values of the type `jsonb` and the Python objects that they encode."""
    await conn.set_type_codec(
        "jsonb", schema="pg_catalog", encoder=_encoded_jsonb, decoder=_decoded_jsonb, format="binary"
    )


def _encoded_jsonb(value: Any) -> bytes:
    return _JSONB_VERSION + dumps(value)


def _decoded_jsonb(raw: bytes) -> Any:
    return loads_exact(raw[len(_JSONB_VERSION) :])


async def _no_reset(_conn: Connection) -> None:
    """Reset nothing when a connection goes back to the pool: tests check that no code leaves anything on it."""


@contextmanager
def first_connection(dsn: str, variable: str = "DATABASE_URL") -> Iterator[None]:
    """Convert errors of the first connection of a process to `DatabaseUnavailable`. They name `variable`.

    If an option of the URL is wrong, the error is `DatabaseError`. The process has not started yet: its operator
    reads the message and no client does, so it names the host.
    """
    try:
        yield
    except Exception as error:
        if (wrong := wrong_option(error)) is not None:
            raise DatabaseError(f"{variable} cannot be used: {wrong}") from error
        if (converted := store_error(error)) is None:
            raise
        said = f": {error}" if getattr(error, "sqlstate", None) == _USER_REFUSED else ""
        hint = (
            f"; {ENCODED}" if isinstance(error, asyncpg.InvalidPasswordError) and has_encoded_password(dsn) else ""
        )
        raise DatabaseUnavailable(f"{converted.what}{said} ({variable}: {location(dsn)}){hint}") from error


@asynccontextmanager
async def open_database(
    dsn: str,
    *,
    min_size: int = 1,
    max_size: int = 20,
    acquire_timeout_s: float = 10,
    command_timeout_s: float = 15,
    lock_timeout_s: float | None = None,
    health: DatabaseHealth | None = None,
    pooled: bool = False,
    variable: str = "DATABASE_URL",
) -> AsyncIterator[Database]:
    """Connect to `dsn` (`postgresql://…`) and close all connections at the end of the block.

    `lock_timeout_s` limits how long a statement waits for a locked row before it fails with `Locked`; by default
    only `command_timeout_s` applies. `health` is shared by the pools of one database.
    `pooled`: `dsn` is that of a pooler, which may pass each transaction to another session of PostgreSQL.
    `variable`: the environment variable that `dsn` is from.
    """
    lock_timeout = None if lock_timeout_s is None else f"{lock_timeout_s * 1000:.0f}ms"
    with first_connection(dsn, variable):
        pool = await asyncpg.create_pool(
            dsn,
            connect=Hosts(dsn).connect,
            min_size=min_size,
            max_size=max_size,
            command_timeout=command_timeout_s,
            timeout=acquire_timeout_s,
            init=_set_codecs,
            reset=_no_reset,
            server_settings={"lock_timeout": lock_timeout} if lock_timeout and not pooled else {},
            **(_WITHOUT_SESSION if pooled else {}),
        )
    connections = ConnectionPool(pool, max_size=max_size, wait_s=acquire_timeout_s)
    try:
        yield Database(connections, health or DatabaseHealth(dsn), lock_timeout=lock_timeout if pooled else None)
    finally:
        try:
            async with asyncio.timeout(_CLOSE_S):
                await connections.close()
                await pool.close()
        except (*UNAVAILABLE, asyncpg.InterfaceError, asyncpg.PostgresError):
            pool.terminate()
