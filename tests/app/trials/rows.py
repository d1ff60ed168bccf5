"""Counts what is stored, because a trial stores nothing but its entry in the audit log."""

from tests.running.servers import Server


async def rows_of(server: Server) -> dict[str, int]:
    """Return the number of rows of each table except those of the audit log."""
    async with server.services.database.connection() as conn:
        tables = await conn.fetch(
            "select tablename from pg_tables where schemaname = 'public' and tablename !~ '^audit'"
        )
        return {
            table["tablename"]: await conn.fetchval(f'select count(*) from "{table["tablename"]}"')
            for table in tables
        }
