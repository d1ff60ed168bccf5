"""A database that can be read but not written, as while a standby takes the place of the primary."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg


@asynccontextmanager
async def read_only(database_url: str) -> AsyncIterator[None]:
    """Make new database sessions read-only during the block. End the existing ones at its start and end."""
    conn = await asyncpg.connect(database_url)
    name = await conn.fetchval("select current_database()")
    try:
        await _set(conn, name, "on")
        try:
            yield
        finally:
            await _set(conn, name, "off")
    finally:
        await conn.close()


async def _set(conn: asyncpg.Connection, name: str, setting: str) -> None:
    await conn.execute(f"alter database {name} set default_transaction_read_only = {setting}")
    await conn.execute("""
        select pg_terminate_backend(pid) from pg_stat_activity
        where datname = current_database() and pid <> pg_backend_pid()
    """)
