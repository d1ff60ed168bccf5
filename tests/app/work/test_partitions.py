"""The worker adds partitions ahead, drops expired ones, and requests find the rows of all partitions."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from prometheus_client import REGISTRY

from app.work.worker import run_jobs
from storage.jobs.jobs import Job, MakePartitions, RemoveExpired, VerifyLedger, enqueue
from storage.postgres.partitions import ATTEMPTS, AUDIT, PARTITIONED, partitions
from streams.tasks import background
from tests.calendar.clock import utc_now
from tests.running.servers import ADMIN_TOKEN, Databases, Server, new_server
from tests.waiting import until

DAY_S = 24 * 3600
_ATTEMPT = """
insert into attempts (app_id, stream_id, number, uid, stage, strategy, vendor, outcome, elapsed_ms, input_unit,
    output_unit, price, usage_source, created_at)
values ('default', $1, 0, $2, 'llm', 'chat', 'openai', 'won', 1, 1, 1, 1, 'vendor', now())
"""
_CHANGE = """
insert into audit (changed_at, actor, action, app_id, kind, name, reason, request_id, address)
values ($1, 'root', 'user.export', 'default', 'user', $2, '', '', '')
"""


@pytest.fixture
async def server(databases: Databases, tmp_path) -> Server:
    """A server whose partitions begin half a year ago, as if it had been used since then."""
    async with new_server(databases, tmp_path, audit_days=40, attempt_days=40) as running:
        async with running.services.database.connection() as conn:
            begin = (utc_now() - timedelta(days=180)).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
            for table in PARTITIONED:
                first = f"{table.name}_first"
                await conn.execute(f"alter table {table.name} detach partition {first}; drop table {first}")
                await conn.execute(
                    f"create table {first} partition of {table.name}"
                    f" for values from (minvalue) to ('{table.encode(begin)}')"
                )
        yield running


async def run(server: Server, job: Job) -> None:
    async with server.services.database.transaction() as conn:
        await enqueue(conn, job)

    async def is_done() -> bool:
        async with server.services.database.connection() as conn:
            waiting = "select from procrastinate_jobs where task_name = $1 and status in ('todo', 'doing')"
            return not await conn.fetchval(f"select exists ({waiting})", job.task)

    async with background(run_jobs(server.services, scheduled=False, poll_s=0.05)):
        await until(is_done)


async def rows(server: Server, statement: str, *arguments: Any) -> list[tuple]:
    async with server.services.database.connection() as conn:
        return [tuple(row) for row in await conn.fetch(statement, *arguments)]


def stream_id(time: datetime) -> str:
    return ATTEMPTS.encode(time) + "7000800000000000beef"


async def use_for_months(server: Server, uid: str) -> list[datetime]:
    """Store a row of each table every 20 days, as the server would have. Return the times."""
    times = [utc_now() - timedelta(days=days) for days in range(0, 180, 20)]
    async with server.services.database.connection() as conn:
        for time in times:
            await conn.execute(_ATTEMPT, stream_id(time), uid)
            await conn.execute(_CHANGE, time, uid)
    return times


async def test_partitions_are_made_ahead_and_rows_that_came_before_are_moved_to_them(server: Server):
    uid, _ = await server.login("device")
    times = await use_for_months(server, uid)
    await run(server, MakePartitions())
    for table in PARTITIONED:
        async with server.services.database.connection() as conn:
            *months, last, default = await partitions(conn, table)
        assert default.ends_at is None
        assert timedelta(days=89) < last.ends_at - utc_now() < timedelta(days=124)
        assert all(
            month.ends_at == later.begins_at for month, later in zip(months, [*months[1:], last], strict=True)
        )
        ahead_s = REGISTRY.get_sample_value("parley_partitions_ahead_seconds", {"table": table.name})
        assert ahead_s is not None
        assert ahead_s > 89 * DAY_S
    for table, key in (("attempts", "stream_id"), ("audit", "changed_at")):
        found = await rows(server, f"select tableoid::regclass::text, {key} from {table} where {key} is not null")
        placed = {name for name, value in found}
        assert f"{table}_default" not in placed, table
        assert f"{table}_{utc_now():%Y_%m}" in placed, table
    expected = {f"attempts_{time:%Y_%m}" for time in times}
    assert {name for (name,) in await rows(server, "select tableoid::regclass::text from attempts")} == expected


async def test_expired_partitions_are_dropped_and_nothing_else(server: Server):
    uid, _ = await server.login("device")
    times = await use_for_months(server, uid)
    await run(server, MakePartitions())
    await run(server, RemoveExpired())
    limit = utc_now() - timedelta(days=40)
    kept = {time for time in times if time > limit}
    assert await rows(server, "select count(*) from audit where kind = 'user'") == [(len(kept),)]
    # Attempts are deleted in whole months.
    first_kept = limit.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    in_months = sorted(stream_id(time) for time in times if time >= first_kept)
    assert await rows(server, "select stream_id from attempts order by 1") == [(one,) for one in in_months]
    for table in (ATTEMPTS, AUDIT):
        async with server.services.database.connection() as conn:
            assert [one for one in await partitions(conn, table) if one.ends_at and one.ends_at <= limit] == []
    left = (
        "select relname from pg_class where relkind = 'r' and relname ~ '^(attempts|audit)_' and not relispartition"
    )
    assert await rows(server, left) == []


async def admin(server: Server, method: str, path: str) -> Any:
    headers = {"Authorization": f"Bearer {ADMIN_TOKEN}", "X-Parley-Reason": "asked by letter"}
    async with server.http.request(method, f"{server.url}/admin/api/{path}", headers=headers) as response:
        answer = await response.json()
        assert response.status == 200, answer
    return answer


async def test_operators_find_the_rows_of_all_partitions_also_of_a_user_who_was_erased(server: Server):
    uid, _ = await server.login("device")
    times = await use_for_months(server, uid)
    await run(server, MakePartitions())
    await admin(server, "POST", f"users/default/{uid}/export")
    await admin(server, "POST", f"users/default/{uid}/erase")
    await run(server, VerifyLedger())
    assert REGISTRY.get_sample_value("parley_ledger_differences") == 0
    changes = (await admin(server, "GET", f"audit?kind=user&name={uid}&size=100"))["changes"]
    assert [change["action"] for change in changes] == ["user.erase", "user.export"] + ["user.export"] * len(times)
    history = await admin(server, "GET", f"users/default/{uid}/history?kinds=operator&size=100")
    assert len(history["history"]) == len(changes)
    for time in (times[0], times[-1]):
        stored = await admin(server, "GET", f"streams/default/{stream_id(time)}/attempts")
        assert (stored["user_id"], len(stored["attempts"])) == (uid, 1)
    kept = (await admin(server, "GET", f"users/default/{uid}/erasure_receipt"))["receipt"]["kept"]
    assert kept.keys() >= {"attempts", "audit"}, "they are kept"
