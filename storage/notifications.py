"""Notifications of PostgreSQL: those of a transaction arrive when it commits, even if its process then dies."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import structlog

from storage.postgres_causes import UNAVAILABLE
from streams.tasks import stopping

log = structlog.get_logger()

_CONNECT_S = 10
_CLOSE_S = 1
_CHECK_S = 5.0
"""How often the connection is used, because a dead one looks like a quiet one."""
_LISTEN_AGAIN_S = 0.5


async def listen(dsn: str, channel: str, on_message: Callable[[str], None]) -> None:
    """Call `on_message` with the payload of each notification of a channel, until cancelled.

    Uses a connection of its own. Notifications are lost while PostgreSQL is unavailable and until 0.5 s later.
    """
    reachable = True
    while not stopping():
        try:
            async with _connection(dsn) as (conn, ended):
                await conn.add_listener(channel, lambda _conn, _pid, _channel, payload: on_message(payload))
                reachable = True
                while not ended.is_set():
                    await _wait(ended)
                    await conn.execute("select 1")
        except (*UNAVAILABLE, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
            if reachable:
                log.warning("notifications.lost", channel=channel, error=str(error) or type(error).__name__)
            reachable = False
        await asyncio.sleep(_LISTEN_AGAIN_S)


async def _wait(ended: asyncio.Event) -> None:
    try:
        async with asyncio.timeout(_CHECK_S):
            await ended.wait()
    except TimeoutError:
        return


@asynccontextmanager
async def _connection(dsn: str) -> AsyncIterator[tuple[Any, asyncio.Event]]:
    """Yield a connection, and an event that is set when it is lost."""
    conn, ended = await asyncpg.connect(dsn, timeout=_CONNECT_S, command_timeout=_CHECK_S), asyncio.Event()
    conn.add_termination_listener(lambda _: ended.set())
    try:
        yield conn, ended
    finally:
        try:
            await conn.close(timeout=_CLOSE_S)
        except (*UNAVAILABLE, asyncpg.PostgresError, asyncpg.InterfaceError):
            conn.terminate()
