"""Deletion of many rows in short transactions."""

from typing import Protocol

from storage.postgres.database import Connection, Database


class Deletion(Protocol):
    async def __call__(self, conn: Connection, /, *, limit: int) -> int:
        """Delete at most `limit` rows and return their number."""


class PagesDeletion(Protocol):
    async def __call__(self, conn: Connection, /, *, pages: range) -> int:
        """Delete rows of these pages of a table and return their number."""


_PAGES = "select pg_relation_size(to_regclass($1)) / current_setting('block_size')::integer"


async def delete_page_by_page(database: Database, table: str, delete: PagesDeletion, *, size: int) -> int:
    """Call `delete` for all pages of `table`, `size` of them in each transaction. Return the total number.

    For rows that no index finds. The table is read once, however many rows are deleted.
    """
    removed = 0
    async with database.connection() as conn:
        last: int = await conn.fetchval(_PAGES, table)
    for first in range(0, last, size):
        async with database.transaction() as conn:
            removed += await delete(conn, pages=range(first, first + size))
    return removed


async def delete_in_batches(database: Database, delete: Deletion, *, size: int) -> int:
    """Call `delete`, each time in a separate transaction, until no rows are left. Return the total number."""
    removed, last = 0, size
    while last == size:
        async with database.transaction() as conn:
            last = await delete(conn, limit=size)
        removed += last
    return removed
