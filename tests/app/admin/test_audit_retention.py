"""Rows of the audit log cannot be changed, and are deleted only when they have expired."""

from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest

from app.work.worker import run_jobs
from storage.jobs.jobs import RemoveExpired, enqueue
from streams.tasks import background
from tests.running.servers import Databases, Server, new_server
from tests.waiting import until

ADD = """
insert into audit (changed_at, actor, action, kind, name, reason, request_id, address)
select now() - make_interval(days => $2), 'root', $1, '', '', '', '', '' from generate_series(1, $3)
"""
"""Adds rows of an action. Parameters: action, age in days, number of rows."""


@pytest.fixture(scope="module")
async def module_server(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Server]:
    async with new_server(databases, tmp_path_factory.mktemp("data"), audit_days=40) as running:
        yield running


@pytest.fixture
def server(shared_server: Server) -> Server:
    return shared_server


async def sql(server: Server, statement: str, *arguments: Any) -> Any:
    async with server.services.database.connection() as conn:
        return await conn.fetchval(statement, *arguments)


async def test_rows_cannot_be_altered_or_deleted(server: Server) -> None:
    await sql(server, ADD, "new", 1, 1)
    await sql(server, ADD, "old", 50, 2)
    count = await sql(server, "select count(*) from audit")
    for statement in (
        "update audit set actor = 'nobody'",
        "delete from audit",
        "delete from audit where action = 'old'",
        "truncate audit",
        "with done as (select set_config('parley.deletes_audit', 'on', false)) delete from audit using done",
        "select delete_expired_audit(40, 1); delete from audit where action = 'old'",
    ):
        conn = await asyncpg.connect(server.services.settings.database_url)
        try:
            with pytest.raises(asyncpg.RaiseError, match="append-only"):
                await conn.execute(statement)
        finally:
            await conn.close()
    assert await sql(server, "select count(*) from audit") == count


async def test_job_deletes_rows_that_have_expired(server: Server) -> None:
    for action, days, count in (("expired", 41, 1500), ("kept", 39, 3)):
        await sql(server, ADD, action, days, count)
    async with server.services.database.transaction() as conn:
        await enqueue(conn, RemoveExpired())

    async def is_done() -> bool:
        return not await sql(server, "select count(*) from procrastinate_jobs")

    async with background(run_jobs(server.services, scheduled=False, poll_s=0.05)):
        await until(is_done)
    assert await sql(server, "select count(*) from audit where action = 'expired'") == 0
    assert await sql(server, "select count(*) from audit where action = 'kept'") == 3


async def test_audit_rows_are_kept_for_at_least_thirty_days(server: Server) -> None:
    await sql(server, ADD, "kept", 29, 2)
    count = await sql(server, "select count(*) from audit")
    assert await sql(server, "select delete_expired_audit(0, 100000)") == 0
    assert await sql(server, "select count(*) from audit") == count
