"""Statements that wait for the locks of other transactions."""

from tests.servers import Server


async def waiting_for_locks(server: Server, count: int) -> bool:
    """Whether `count` statements in the database of `server` wait for locks."""
    async with server.services.database.connection() as conn:
        waiting: int = await conn.fetchval(
            "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
        )
    return waiting == count
