"""A pool of PostgreSQL connections that passes a connection directly from one user to the next.

asyncpg's pool opens and closes the connections. Acquiring a connection from it and releasing it costs more than
executing a small statement, so a connection only goes back to it when it was lost or may be in the middle of a
statement.
"""

import asyncio
import time
from collections import deque
from contextlib import suppress

import asyncpg

from storage.postgres.connection import Connection

_END_S = 1.0
"""How long the cancellation of a running statement may take before the connection is closed."""

_RENEWED_S = 1.0
"""So that a database that stays read-only is not asked for new connections by every call."""


class AllInUse(TimeoutError):
    """No connection became available in time."""


class ConnectionPool:
    """Takes at most `max_size` connections from `pool`. A caller waits up to `wait_s` for a free connection."""

    def __init__(self, pool: asyncpg.Pool, *, max_size: int, wait_s: float) -> None:
        self._pool = pool
        self._max_size = max_size
        self._wait_s = wait_s
        self._taken = 0
        self._idle: list[Connection] = []
        self._renewed_at = float("-inf")
        self.generation = 0
        """The number of times that all connections were replaced."""
        self._waiters: deque[asyncio.Future[Connection | None]] = deque()

    async def acquire(self) -> Connection:
        """Return a connection, to be given back with `release`. Raises `AllInUse` if none becomes available."""
        while True:
            while self._idle:
                conn = self._idle.pop()
                if _usable(conn):
                    return conn
                await self._discard(conn)
            if self._taken < self._max_size:
                return await self._new()
            if (passed := await self._wait()) is not None:
                return passed

    async def release(self, conn: Connection, *, discard: bool) -> None:
        """Give a connection back.

        With `discard`, it may be in the middle of a statement, so asyncpg's pool takes it back: it waits for the
        cancellation of the statement, rolls back an open transaction, and closes the connection if that fails.
        """
        if not discard and _usable(conn):
            self._pass_on(conn)
        else:
            await self._discard(conn)

    async def renew(self) -> None:
        """Replace all connections, at most once a second. Those in use must be discarded when they are released."""
        if time.monotonic() < self._renewed_at + _RENEWED_S:
            return
        self._renewed_at = time.monotonic()
        self.generation += 1
        await self._pool.expire_connections()
        idle, self._idle = self._idle, []
        await asyncio.gather(*map(self._discard, idle))

    async def close(self) -> None:
        while self._idle:
            await self._discard(self._idle.pop())

    async def _new(self) -> Connection:
        self._taken += 1
        try:
            conn: Connection = await self._pool.acquire(timeout=self._wait_s)
        except BaseException:
            self._taken -= 1
            self._pass_on(None)
            raise
        return conn

    async def _discard(self, conn: Connection) -> None:
        """Return a connection to asyncpg's pool. If that fails, the connection is closed, which is not an error."""
        try:
            with suppress(OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError):
                await self._pool.release(conn, timeout=_END_S)
        finally:
            self._taken -= 1
            self._pass_on(None)

    async def _wait(self) -> Connection | None:
        """Wait for a released connection. Return `None` if a new one may be opened instead."""
        waiter: asyncio.Future[Connection | None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        try:
            async with asyncio.timeout(self._wait_s):
                return await waiter
        except BaseException as error:
            if waiter.done() and not waiter.cancelled():
                self._pass_on(waiter.result())
            waiter.cancel()
            if isinstance(error, TimeoutError):
                raise AllInUse from None
            raise

    def _pass_on(self, conn: Connection | None) -> None:
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(conn)
                return
        if conn is not None:
            self._idle.append(conn)


def _usable(conn: Connection) -> bool:
    try:
        return not conn.is_closed()
    except asyncpg.InterfaceError:  # The connection was lost, and asyncpg's pool has taken it back.
        return False
