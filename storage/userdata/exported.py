"""The contents of exports: rows, records in conversations, and the names of files.

An exporter is an async generator. It reads large tables in pages, and holds no connection between them.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from storage.conversations.conversations import page
from storage.conversations.speech_files import days_folder
from storage.objects import ObjectStore
from storage.postgres.database import Database
from streams.wire.codec import encoded

_ROWS_AT_ONCE = 100
_RECORDS_AT_ONCE = 100
_RECORDS_BYTES = 1024 * 1024
_LAST_RECORD = 2**31 - 1


@dataclass(frozen=True, slots=True)
class ExportedUser:
    """A user whose data is exported, and the stores that have it."""

    app_id: str
    uid: str
    database: Database
    objects: ObjectStore


Exporter = Callable[[ExportedUser], AsyncGenerator[Any]]
"""Yields the items of a list."""
ItemExporter = Callable[[ExportedUser], Awaitable[Any]]
"""Returns a single item."""


def row(query: str) -> ItemExporter:
    """Return an exporter of the only row of a query, whose parameters are the app and the user."""

    async def export(user: ExportedUser) -> dict[str, Any] | None:
        async with user.database.connection() as conn:
            found = await conn.fetchrow(query, user.app_id, user.uid)
        return None if found is None else dict(found)

    return export


def rows(query: str) -> Exporter:
    """Return an exporter of the rows of a query, whose parameters are the app and the user."""

    async def export(user: ExportedUser) -> AsyncGenerator[dict[str, Any]]:
        async with user.database.connection() as conn:
            found = await conn.fetch(query, user.app_id, user.uid)
        for row in found:
            yield dict(row)

    return export


def paged(query: str) -> Exporter:
    """Return an exporter that reads the rows of a query in pages.

    The rows are ordered by the first column. The parameters of the query are the app, the user, the value of the
    first column after which the page begins, and the size of a page.
    """

    async def export(user: ExportedUser) -> AsyncGenerator[dict[str, Any]]:
        after = ""
        while True:
            async with user.database.connection() as conn:
                found = await conn.fetch(query, user.app_id, user.uid, after, _ROWS_AT_ONCE)
            if not found:
                return
            for row in found:
                yield dict(row)
            after = found[-1][0]

    return export


_SCORES = rows("""
select board, starts_at, ends_at, score, extra, posted_at from leaderboard_scores
join leaderboard_periods using (period_id)
where leaderboard_scores.app_id = $1 and uid = $2 order by starts_at, board
""")


async def scores(user: ExportedUser) -> AsyncGenerator[dict[str, Any]]:
    async with aclosing(_SCORES(user)) as found:
        async for row in found:
            yield {**row, "extra": None if row["extra"] is None else encoded(row["extra"])}


_CONVERSATIONS = paged("""
select conversation_id, created_at, updated_at from conversations
where app_id = $1 and uid = $2 and conversation_id > $3 order by conversation_id limit $4
""")


async def conversations(user: ExportedUser) -> AsyncGenerator[dict[str, Any]]:
    """Yield the conversations of a user. The records of each conversation are a generator too."""
    async with aclosing(_CONVERSATIONS(user)) as found:
        async for row in found:
            yield {**row, "records": _records(user, row["conversation_id"])}


async def _records(user: ExportedUser, conversation_id: str) -> AsyncGenerator[dict[str, Any]]:
    newest = _LAST_RECORD
    while newest > 0:
        async with user.database.connection() as conn:
            records = await page(
                conn,
                user.app_id,
                conversation_id=conversation_id,
                newest=newest,
                size=_RECORDS_AT_ONCE,
                max_bytes=_RECORDS_BYTES,
            )
        if not records:
            return
        for record in records:
            yield {
                "record_id": record.record_id,
                "status": record.status,
                "strategy": record.strategy,
                "created_at": record.created_at,
                "updated_at": record.updated_at,
                "content": encoded(record.content),
            }
        newest = records[-1].record_id - 1


async def speech(user: ExportedUser) -> AsyncGenerator[str]:
    """Yield the keys of the user's stored audio of text-to-speech streams, a day at a time."""
    for folder in sorted(await user.objects.folders(days_folder(user.app_id))):
        for key in sorted(await user.objects.keys(f"{folder}{user.uid}/")):
            yield key
