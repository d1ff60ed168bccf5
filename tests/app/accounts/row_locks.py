"""Statements that wait for the locks of other transactions."""

import asyncio
from collections.abc import Coroutine
from functools import partial
from typing import Any

from tests.running.servers import Server
from tests.waiting import until

Answer = tuple[int, Any]


async def waiting_for_locks(server: Server, count: int) -> bool:
    """Whether `count` statements in the database of `server` wait for locks."""
    async with server.services.database.connection() as conn:
        waiting: int = await conn.fetchval(
            "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
        )
    return waiting == count


async def one_after_the_other(server: Server, uid: str, *calls: Coroutine[Any, Any, Answer]) -> list[Answer]:
    """Make calls that lock the row of a user, at the same time. Each gets the lock after those before it."""
    running = []
    async with server.services.database.transaction() as conn:
        await conn.fetch("select from users where uid = $1 for update", uid)
        for number, call in enumerate(calls, start=1):
            running.append(asyncio.ensure_future(call))  # noqa: TID251 - awaited below
            await until(partial(waiting_for_locks, server, number))
    return await asyncio.gather(*running)
