"""The pool of connections: keeps idle ones for reuse, and knows all open ones so that they can be closed."""

import asyncio
from contextlib import suppress

from vendors.http.http1.connection import Connection
from vendors.http.http1.request import Origin

_MAX_IDLE = 1024
"""The maximum number of idle connections to one origin, which limits what remains after a burst."""
_CLOSE_S = 1


class Pool:
    """Reuses the most recently used connection first, so that the surplus of a burst expires."""

    def __init__(self, *, idle_s: float) -> None:
        self._idle_s = idle_s
        self._idle: dict[Origin, dict[Connection, float]] = {}
        """The idle connections of each origin, oldest first, with the time at which each expires."""
        self._open: set[Connection] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._empty = asyncio.Event()
        self._closed = False

    def add(self, connection: Connection) -> None:
        """Register a new connection, which is in use."""
        self._open.add(connection)
        if self._closed:
            connection.abort()

    def take(self, origin: Origin) -> Connection | None:
        """Return an idle connection for use, or `None`."""
        idle = self._idle.get(origin)
        while idle:
            connection, _ = idle.popitem()
            if connection.open:
                return connection
        return None

    def keep(self, connection: Connection) -> None:
        idle = self._idle.setdefault(connection.origin, {})
        if self._closed or len(idle) >= _MAX_IDLE or not self._idle_s:
            connection.abort()
            return
        loop = asyncio.get_running_loop()
        idle[connection] = loop.time() + self._idle_s
        if self._timer is None:
            self._timer = loop.call_later(self._idle_s, self._expire)

    def lost(self, connection: Connection) -> None:
        self._open.discard(connection)
        if idle := self._idle.get(connection.origin):
            idle.pop(connection, None)
        if not self._open:
            self._empty.set()

    async def close(self) -> None:
        """Close all connections and wait briefly until they are closed."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        self._idle.clear()
        if not self._open:
            return
        self._empty.clear()
        for connection in tuple(self._open):
            connection.abort()
        with suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_S):
                await self._empty.wait()

    def _expire(self) -> None:
        loop = asyncio.get_running_loop()
        now, next_at = loop.time(), 0.0
        for origin, idle in tuple(self._idle.items()):
            for connection, expires_at in tuple(idle.items()):
                if expires_at > now:
                    next_at = min(next_at or expires_at, expires_at)
                    break
                del idle[connection]
                connection.abort()
            if not idle:
                del self._idle[origin]
        self._timer = loop.call_at(next_at, self._expire) if next_at else None
