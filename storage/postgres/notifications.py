"""Notifications of PostgreSQL: those of a transaction arrive when it commits, even if its process then dies."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import asyncpg
import structlog

from storage.postgres.causes import UNAVAILABLE
from storage.postgres.hosts import Hosts
from streams.tasks import stopping

log = structlog.get_logger()

_CONNECT_S = 10
_CLOSE_S = 1
_CHECK_S = 0.25
"""How often the connection is checked, because a dead one looks like a quiet one."""
_ANSWER_S = 5
_LISTEN_AGAIN_S = 0.5
_NAME = "parley notifications"
"""The name of the connection in `pg_stat_activity`."""


async def listen(
    dsn: str, channel: str, on_message: Callable[[str], None], *, on_checked: Callable[[float, float], None]
) -> None:
    """Call `on_message` with the payload of each notification of a channel, until cancelled.

    Uses its own connection. Notifications are lost while PostgreSQL is unavailable and until 0.5 s later.
    `on_checked` is called several times a second with two times, between which no notification was lost: when the
    connection began to listen, on PostgreSQL's clock, and when it was last checked, on the monotonic clock.
    """
    reachable, hosts = True, Hosts(dsn)
    while not stopping():
        try:
            async with _connection(hosts) as (conn, ended):
                await conn.add_listener(channel, lambda _conn, _pid, _channel, payload: on_message(payload))
                checked_at = time.monotonic()
                since_s = await conn.fetchval("select extract(epoch from clock_timestamp())::float8")
                reachable = True
                while not ended.is_set():
                    on_checked(since_s, checked_at)
                    await _wait(ended)
                    checked_at = time.monotonic()
                    await conn.execute("select 1")  # Its answer comes after the notifications before it.
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
async def _connection(hosts: Hosts) -> AsyncIterator[tuple[asyncpg.Connection, asyncio.Event]]:
    """Yield a connection, and an event that is set when it is lost."""
    named = {"application_name": _NAME}
    conn = await hosts.connect(timeout=_CONNECT_S, command_timeout=_ANSWER_S, server_settings=named)
    ended = asyncio.Event()
    conn.add_termination_listener(lambda _: ended.set())
    try:
        yield conn, ended
    finally:
        try:
            await conn.close(timeout=_CLOSE_S)
        except (*UNAVAILABLE, asyncpg.PostgresError, asyncpg.InterfaceError):
            conn.terminate()
