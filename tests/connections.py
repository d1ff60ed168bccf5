"""Connections to PostgreSQL go from one caller to the next as they are, so callers must leave nothing behind."""

import asyncio
from typing import Any

import asyncpg

from app.services import Services
from storage.postgres.pool import ConnectionPool

_WITHIN_S = 2
_LEFT = """
select array(select 'setting ' || name from pg_settings
                   where source = 'session' and name not in ('jit', 'client_encoding'))
    || array(select 'advisory lock' from pg_locks where locktype = 'advisory' and pid = pg_backend_pid())
    || array(select 'channel ' || pg_listening_channels())
    || array(select 'prepared statement ' || name from pg_prepared_statements where from_sql)
    || array(select 'cursor ' || name from pg_cursors where is_holdable)
"""
"""asyncpg itself switches `jit` off and on again, and PgBouncer sets the encoding that its client has asked for."""


async def check_connections(services: Services) -> None:
    """Fail if an idle connection of a pool has settings, locks or other state that its next user would get."""
    pools = [database._pool for database in (services.database, services.turns._database)]
    found = [left for pool in pools for left in await _left_in(pool)]
    assert not found, f"connections to PostgreSQL keep {', '.join(found)}"


async def _left_in(pool: ConnectionPool) -> list[str]:
    """Return what is left on the idle connections of a pool. Background tasks cannot acquire these meanwhile."""
    idle, pool._idle = pool._idle, []
    try:
        return [left for conn in idle for left in await left_on(conn)]
    finally:
        for conn in idle:
            pool._pass_on(conn)


async def left_on(conn: Any) -> list[str]:
    """Return what earlier users have left on a connection; nothing if the database is unavailable."""
    try:
        async with asyncio.timeout(_WITHIN_S):
            left: list[str] = await conn.fetchval(_LEFT)
            return left
    except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError):
        return []
