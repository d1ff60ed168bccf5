"""Statements that wait for the locks of a transaction.

Jobs of the server wait for locks of each other too, at any time: those are not counted.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any

from storage.postgres.database import Connection, Database
from tests.running.servers import Server
from tests.waiting import until

Answer = tuple[int, Any]
_BEHIND = """
with recursive behind (pid) as (
    select $1::integer
    union
    select waiting.pid from pg_stat_activity waiting join behind on behind.pid = any(pg_blocking_pids(waiting.pid))
    where waiting.datname = current_database() and waiting.wait_event_type = 'Lock'
)
select pid, query_start from behind join pg_stat_activity using (pid) where pid <> $1
"""


async def waiting_behind(database: Database, holder: Connection) -> list[tuple[Any, ...]]:
    """Return the session and start of each statement that waits for locks of `holder`, or for such a statement."""
    pid = await holder.fetchval("select pg_backend_pid()")  # Behind a pooler, only the session itself knows it.
    async with database.connection() as conn:
        return [tuple(row) for row in await conn.fetch(_BEHIND, pid)]


async def until_waiting(database: Database, holder: Connection, count: int = 1) -> None:
    """Wait until `count` statements wait for locks of `holder`, or for statements that do."""

    async def waiting() -> bool:
        return len(await waiting_behind(database, holder)) >= count

    await until(waiting)


async def one_after_the_other(server: Server, uid: str, *calls: Coroutine[Any, Any, Answer]) -> list[Answer]:
    """Make calls that lock the row of a user, at the same time. Each gets the lock after those before it."""
    running = []
    database = server.services.database
    async with database.transaction() as conn:
        await conn.fetch("select from users where uid = $1 for update", uid)
        for number, call in enumerate(calls, start=1):
            running.append(asyncio.ensure_future(call))  # noqa: TID251 - awaited below
            await until_waiting(database, conn, number)
    return await asyncio.gather(*running)
