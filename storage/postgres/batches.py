"""Deletion of many rows in short transactions."""

from typing import Protocol

from storage.postgres.database import Connection, Database


class Deletion(Protocol):
    async def __call__(self, conn: Connection, /, *, limit: int) -> int:
        """Delete at most `limit` rows and return their number."""


async def delete_in_batches(database: Database, delete: Deletion, *, size: int) -> int:
    """Call `delete`, each time in a separate transaction, until no rows are left. Return the total number."""
    removed, last = 0, size
    while last == size:
        async with database.transaction() as conn:
            last = await delete(conn, limit=size)
        removed += last
    return removed
