"""Connections to PostgreSQL from hand to hand: one that was used well goes to its next user as it is.

asyncpg's pool makes and ends them; to take one from it and give it back costs more than a small statement.
"""

import asyncio
from collections import deque
from typing import Any

import asyncpg

Connection = Any

_END_S = 1.0
"""So long what a connection is in the middle of may take to be cancelled; then the connection is cut."""


class AllInUse(TimeoutError):
    """No connection became free in time."""


class ConnectionPool:
    """At most `most` connections are taken from `pool`; who finds none waits `wait_s` (`AllInUse`)."""

    def __init__(self, pool: Any, *, most: int, wait_s: float) -> None:
        self._pool = pool
        self._most = most
        self._wait_s = wait_s
        self._taken = 0
        self._idle: list[Connection] = []
        self._waiting: deque[asyncio.Future[Connection | None]] = deque()

    async def acquire(self) -> Connection:
        """A connection, to be returned by `release`. Raises `AllInUse`."""
        while True:
            while self._idle:
                conn = self._idle.pop()
                if _usable(conn):
                    return conn
                await self._give_up(conn)
            if self._taken < self._most:
                return await self._new()
            if (conn := await self._wait()) is not None:
                return conn

    async def release(self, conn: Connection, *, discard: bool) -> None:
        """Return a connection. `discard`: it may be in the middle of a statement, so it is closed."""
        if not discard and _usable(conn):
            self._pass_on(conn)
        else:
            await self._give_up(conn)

    async def close(self) -> None:
        while self._idle:
            await self._give_up(self._idle.pop())

    async def _new(self) -> Connection:
        self._taken += 1
        try:
            return await self._pool.acquire(timeout=self._wait_s)
        except BaseException:
            self._taken -= 1
            self._pass_on(None)
            raise

    async def _give_up(self, conn: Connection) -> None:
        try:
            await self._pool.release(conn, timeout=_END_S)
        finally:
            self._taken -= 1
            self._pass_on(None)

    async def _wait(self) -> Connection | None:
        """What somebody gives back; nothing where a new one may be made."""
        waiting: asyncio.Future[Connection | None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiting)
        try:
            async with asyncio.timeout(self._wait_s):
                return await waiting
        except BaseException as error:
            if waiting.done() and not waiting.cancelled():
                self._pass_on(waiting.result())
            waiting.cancel()
            if isinstance(error, TimeoutError):
                raise AllInUse from None
            raise

    def _pass_on(self, conn: Connection | None) -> None:
        while self._waiting:
            waiting = self._waiting.popleft()
            if not waiting.done():
                waiting.set_result(conn)
                return
        if conn is not None:
            self._idle.append(conn)


def _usable(conn: Connection) -> bool:
    try:
        return not conn.is_closed()
    except asyncpg.InterfaceError:  # it was lost, and the pool has taken it back
        return False
