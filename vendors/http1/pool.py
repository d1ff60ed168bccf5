"""Connections between two requests: kept for a while, and all known to be closed in the end."""

import asyncio
from contextlib import suppress

from vendors.http1.connection import Connection
from vendors.http1.request import Origin

_MOST_IDLE = 1024
"""Of one origin: what a burst of streams leaves behind need not all be kept."""
_CLOSE_S = 1


class Pool:
    """The connection that was used last is used next, so that a burst's others end."""

    def __init__(self, *, idle_s: float) -> None:
        self._idle_s = idle_s
        self._idle: dict[Origin, dict[Connection, float]] = {}
        """Of each origin, oldest first, with the time that it is kept until."""
        self._open: set[Connection] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._empty = asyncio.Event()
        self._closed = False

    def add(self, connection: Connection) -> None:
        """One that was made; it is in use."""
        self._open.add(connection)
        if self._closed:
            connection.cut()

    def take(self, origin: Origin) -> Connection | None:
        """One that is idle, now in use."""
        kept = self._idle.get(origin)
        while kept:
            connection, _ = kept.popitem()
            if connection.open:
                return connection
        return None

    def keep(self, connection: Connection) -> None:
        kept = self._idle.setdefault(connection.origin, {})
        if self._closed or len(kept) >= _MOST_IDLE or not self._idle_s:
            connection.cut()
            return
        loop = asyncio.get_running_loop()
        kept[connection] = loop.time() + self._idle_s
        if self._timer is None:
            self._timer = loop.call_later(self._idle_s, self._expire)

    def lost(self, connection: Connection) -> None:
        self._open.discard(connection)
        if kept := self._idle.get(connection.origin):
            kept.pop(connection, None)
        if not self._open:
            self._empty.set()

    async def close(self) -> None:
        """Cut all of them, and see them gone."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        self._idle.clear()
        if not self._open:
            return
        self._empty.clear()
        for connection in tuple(self._open):
            connection.cut()
        with suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_S):
                await self._empty.wait()

    def _expire(self) -> None:
        loop = asyncio.get_running_loop()
        now, next_at = loop.time(), 0.0
        for origin, kept in tuple(self._idle.items()):
            for connection, until in tuple(kept.items()):
                if until > now:
                    next_at = min(next_at or until, until)
                    break
                del kept[connection]
                connection.cut()
            if not kept:
                del self._idle[origin]
        self._timer = loop.call_at(next_at, self._expire) if next_at else None
