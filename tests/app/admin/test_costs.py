"""Operators see what calls to vendors cost, and which limits have refused calls."""

from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from app.admin.money import costs
from app.process.figures import FiguresOfProcess
from storage.operators import figures
from storage.operators.audit import COMMAND
from tests.app.operator_calls import call
from tests.calendar.clock import utc_now
from tests.running.servers import Server

COSTS = "/admin/api/costs"
PAST = timedelta(days=3)


async def read(server: Server, path: str) -> Any:
    status, answer = await call(server, "GET", path)
    assert status == 200, answer
    return answer


async def store(server: Server, began_at: datetime, price: str, **fields: Any) -> None:
    """Store the attempt of a stream that began at a time."""
    stream_id = f"{round(began_at.timestamp() * 1000):012x}{uuid4().hex[:20]}"
    row = {"app": "default", "strategy": "s", "vendor": "v", "model": "m", "outcome": "won", **fields}
    async with server.services.database.connection() as conn:
        await conn.execute(
            "insert into attempts (app_id, stream_id, number, uid, stage, strategy, vendor, model, outcome,"
            " elapsed_ms, input_unit, output_unit, price, usage_source)"
            " values ($1, $2, 1, 'u', 'llm', $3, $4, $5, $6, 5, 1, 1, $7::text::numeric, 'vendor')",
            row["app"], stream_id, row["strategy"], row["vendor"], row["model"], row["outcome"], price,
        )  # fmt: skip


async def test_costs_are_added_up_by_what_is_asked_for(server: Server) -> None:
    other = {"title": "Other", "currency": "EUR"}
    await server.services.configs.put("other", "apps", "default", other, author="test", origin=COMMAND)
    now = utc_now()
    await store(server, now - PAST, "0.25", model="small")
    await store(server, now - PAST, "0.1", model="small", outcome="failed")
    await store(server, now - PAST, "3", model="large")
    await store(server, now - PAST, "2.50", strategy="other", model=None, vendor="w")
    await store(server, now - PAST, "7", app="other")
    await store(server, now - timedelta(days=40), "1000")
    answer = await read(server, f"{COSTS}?days=7")
    assert answer["rows"] == [
        {"attempts": 1, "failed": 0, "price": "7", "currency": "EUR", "vendor": "v"},
        {"attempts": 3, "failed": 1, "price": "3.35", "currency": "USD", "vendor": "v"},
        {"attempts": 1, "failed": 0, "price": "2.5", "currency": "USD", "vendor": "w"},
    ]
    assert answer["totals"] == [
        {"attempts": 1, "failed": 0, "price": "7", "currency": "EUR"},
        {"attempts": 4, "failed": 1, "price": "5.85", "currency": "USD"},
    ]
    assert answer["missing_hours"] == 0
    by_model = (await read(server, f"{COSTS}?days=7&by=model&app=default"))["rows"]
    assert [(row["vendor"], row["model"], row["price"]) for row in by_model] == [
        ("v", "large", "3"),
        ("w", "", "2.5"),
        ("v", "small", "0.35"),
    ]
    by_strategy = (await read(server, f"{COSTS}?days=7&by=strategy&app=default"))["rows"]
    assert [(row["app"], row["strategy"], row["price"]) for row in by_strategy] == [
        ("default", "s", "3.35"),
        ("default", "other", "2.5"),
    ]
    by_app = (await read(server, f"{COSTS}?days=30&by=app"))["rows"]
    assert [(row["app"], row["price"], row["currency"]) for row in by_app] == [
        ("other", "7", "EUR"),
        ("default", "5.85", "USD"),
    ]
    assert (await read(server, f"{COSTS}?days=1"))["rows"] == []


async def test_hours_that_are_over_are_read_once_and_those_that_take_too_long_are_named(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = utc_now()
    await store(server, now - PAST, "4")
    monkeypatch.setattr(costs, "_WITHIN_S", 0.0)
    answer = await read(server, f"{COSTS}?days=7")
    assert (answer["rows"], answer["missing_hours"] > 24 * 6) == ([], True)
    monkeypatch.undo()
    assert (await read(server, f"{COSTS}?days=7"))["totals"][0]["price"] == "4"
    await store(server, now - PAST, "4")
    monkeypatch.setattr(costs, "_WITHIN_S", 0.0)
    answer = await read(server, f"{COSTS}?days=7")
    assert (answer["totals"][0]["price"], answer["missing_hours"]) == ("4", 0)


@pytest.mark.parametrize(
    ("query", "status", "message"),
    [
        ("app=none", 404, "item_not_found: app none does not exist"),
        ("days=31", 400, "invalid_parameter: days must be at most 30"),
        ("by=x", 400, "invalid_parameter: by must be one of 'vendor', 'model', 'strategy' or 'app'"),
    ],
)
async def test_wrong_queries_are_refused(server: Server, query: str, status: int, message: str) -> None:
    answered, answer = await call(server, "GET", f"{COSTS}?{query}")
    assert (answered, answer["error"]["message"]) == (status, message)


async def test_limits_that_have_refused_calls_are_counted(server: Server) -> None:
    limits = {"rates": {"signup": {"count": 1, "per_s": 1000}}}
    await server.services.configs.put("default", "limits", "default", limits, author="test", origin=COMMAND)
    own = FiguresOfProcess(server.services)
    await server.login()
    for _ in range(2):
        body = {"device": {"id": uuid4().hex}}
        async with server.http.post(f"{server.url}/bp/user/login", json=body) as response:
            assert response.status == 429
    assert await read(server, "/admin/api/limits") == {"window_s": 0.0, "processes": 0, "limits": []}
    await figures.publish(server.services.valkey, "one", own.read())
    answer = await read(server, "/admin/api/limits")
    assert (answer["processes"], answer["limits"]) == (1, [{"limit": "signup", "refused": 2}])
