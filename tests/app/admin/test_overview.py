"""The overview adds up what all server processes publish."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from app.admin.overview import quantile_ms
from app.process.figures import FiguresOfProcess, publishing_figures
from storage.operators import figures
from streams.wire.codec import loads
from tests.app.operator_calls import OPERATORS, call
from tests.running.servers import ADMIN_TOKEN, Databases, Server, new_server
from tests.waiting import until
from vendors.calls.metrics import BUCKETS_S, ended, had_output

OVERVIEW = "/admin/api/overview"


@pytest.fixture
async def server(databases: Databases, tmp_path: Path) -> AsyncIterator[Server]:
    async with new_server(databases, tmp_path) as running, publishing_figures(running.services):
        yield running


async def overview(server: Server) -> dict[str, Any]:
    status, answer = await call(server, "GET", OVERVIEW)
    assert status == 200, answer
    read: dict[str, Any] = answer
    return read


async def test_the_figures_of_all_processes_are_added_up_and_those_of_ended_ones_are_not(server: Server) -> None:
    await until(lambda: has_processes(server, 1))
    own = FiguresOfProcess(server.services)
    ended("llm", "test-vendor", "failed", elapsed_s=1)
    ended("llm", "test-vendor", "won", elapsed_s=1)
    had_output("llm", "test-vendor", after_s=0.4)
    other = {**own.read(), "live": {"conversation": 2}, "readers": 3, "breakers": ["an-account"]}
    await figures.publish(server.services.valkey, "other", other)
    await figures.publish(server.services.valkey, "another", other)
    await figures.publish(server.services.valkey, "ended", {**other, "at": 0})
    read = await overview(server)
    assert len(read["processes"]) == 3
    assert (read["live"], read["readers"]) == ([{"name": "conversation", "count": 4}], 6)
    assert read["breakers"].count("an-account") == 1, "other tests of this process may have opened other breakers"
    [vendor] = [row for row in read["vendors"] if row["vendor"] == "test-vendor"]
    assert (vendor["attempts"] >= 4, vendor["failed"] >= 2) == (True, True)
    assert 300 <= vendor["p50_ms"] <= vendor["p95_ms"] <= 500


async def has_processes(server: Server, count: int) -> bool:
    return len((await overview(server))["processes"]) == count


async def test_what_changed_last_leaves_out_changes_of_operators(server: Server) -> None:
    await call(server, "POST", OPERATORS, {"name": "ada", "role": "viewer"})
    await call(server, "PUT", "/admin/api/configs/default/apps/default", {"value": {"title": "Renamed"}})
    actions = {row["action"] for row in (await overview(server))["changes"]}
    assert ("config.put" in actions, "operator.add" in actions) == (True, False)


async def test_what_was_paid_today_is_the_sum_of_the_sales_of_all_apps(server: Server) -> None:
    async with server.services.database.connection() as conn:
        await conn.execute("""
            insert into sales_days (app_id, day, currency, kind, part, payments, amount)
            select app, (now() at time zone 'utc')::date - back, currency, kind, 1, payments, amount from (values
                ('default', 0, 'USD', 'charge', 2, 398), ('other', 0, 'EUR', 'renewal', 3, 597),
                ('default', 0, 'USD', 'refund', 1, 199), ('default', 1, 'USD', 'charge', 9, 900)
            ) as sold (app, back, currency, kind, payments, amount)""")
    assert (await overview(server))["money"] == [
        {"currency": "EUR", "payments": 3, "amount": 597},
        {"currency": "USD", "payments": 2, "amount": 398},
    ]


async def test_overviews_that_are_asked_for_at_once_wait_for_what_one_of_them_reads(server: Server) -> None:
    read = await asyncio.gather(*(overview(server) for _ in range(4)))
    assert [set(found) for found in read] == [set(read[0])] * 4


async def test_the_overview_is_sent_as_events(server: Server) -> None:
    headers = {"Authorization": f"Bearer {ADMIN_TOKEN}"}
    async with server.http.get(f"{server.url}{OVERVIEW}/events", headers=headers) as response:
        assert response.content_type == "text/event-stream"
        for _ in range(2):
            async with asyncio.timeout(10):
                line = await response.content.readuntil(b"\n\n")
            assert {"live", "vendors", "processes"} <= loads(line.removeprefix(b"data: ")).keys()


def test_a_quantile_lies_within_its_bucket() -> None:
    counts = [0] * (len(BUCKETS_S) + 1)
    assert quantile_ms(counts, 0.5) is None
    counts[3] = 10
    assert 25 <= (quantile_ms(counts, 0.5) or 0) <= 50
    counts[-1] = 1000
    assert quantile_ms(counts, 0.95) == BUCKETS_S[-1] * 1000
