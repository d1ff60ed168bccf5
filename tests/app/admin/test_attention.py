"""The overview begins with what needs the attention of an operator, and with what vendors have cost."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from app.process.figures import FiguresOfProcess
from storage.operators import figures
from storage.operators.audit import COMMAND
from tests.app.operator_calls import call
from tests.running.servers import Databases, Server, new_server

WORKER = "insert into procrastinate_workers default values"
HELD = """
insert into procrastinate_jobs (queue_name, task_name, args, status)
values ('parley', 'send_mail', '{}', 'failed'), ('parley', 'pay_out', '{}', 'failed'),
    ('parley', 'refund_card', '{}', 'failed'), ('parley', 'refund_card', '{}', 'todo')
"""
WEBHOOKS = """
insert into webhooks (webhook_id, app_id, source, config, headers, body, received_at, status)
select status || number, 'default', 'walletpay', 'c', '{}', '', now(), status
from unnest(array['failed', 'done', 'received']) as states (status), generate_series(1, 2) as numbers (number)
"""
MISMATCHES = """
insert into payment_mismatches (app_id, platform, kind, subject, detail, found_at)
values ('default', 'walletpay', 'refund_failed', 's', '', now()),
    ('default', 'walletpay', 'missed_event', 's', '', now())
"""
EVENTS = """
insert into reported_events (event_id, app_id, sink, event, uid, happened_at, data, dead_at)
select number::text, 'default', 'crm', 'sign_up', 'u', now(), '{}', case when number > 1 then now() end
from generate_series(1, 4) as numbers (number)
"""
SILENT = "insert into processes (process, seen_at) values ('a-process', now() - interval '40 seconds')"
ATTEMPTS = """
insert into attempts (app_id, stream_id, number, uid, stage, strategy, vendor, outcome, elapsed_ms, input_unit,
    output_unit, price, usage_source)
select 'default', lpad(to_hex((extract(epoch from now()) * 1000)::bigint), 12, '0') || '0', number, 'u', 'llm', 's',
    'v', 'won', 1, 1, 1, 0.0125, 'vendor'
from generate_series(1, 2) as numbers (number)
"""


@pytest.fixture
async def server(databases: Databases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Server]:
    """A server that knows nothing of stores that earlier tests of this process have taken away."""
    monkeypatch.setattr("storage.availability._unavailable", {})
    async with new_server(databases, tmp_path) as running:
        yield running


async def execute(server: Server, *statements: str) -> None:
    async with server.services.database.connection() as conn:
        for statement in statements:
            await conn.execute(statement)


async def overview(server: Server) -> Any:
    status, answer = await call(server, "GET", "/admin/api/overview")
    assert status == 200, answer
    return answer


async def test_nothing_needs_attention_while_a_worker_runs(server: Server) -> None:
    await execute(server, WORKER)
    assert (await overview(server))["attention"] == []


async def test_each_cause_is_one_row_with_a_number_and_names_the_worst_first(server: Server) -> None:
    await execute(server, HELD, WEBHOOKS, MISMATCHES, EVENTS, SILENT)
    await break_config(server)
    attempts = {"llm\tfailing\tfailed": 9, "llm\tfailing\twon": 1, "stt\tgood\twon": 9, "stt\tgood\tfailed": 3}
    own = {**FiguresOfProcess(server.services).read(), "attempts": attempts}
    other = {**own, "version": "1.2.3", "breakers": ["default/an-account"], "stores_away": ["objects"]}
    other["attempts"] = {"tts\trare\tfailed": 2}
    await figures.publish(server.services.valkey, "own", {**own, "version": "1.2.4", "breakers": []})
    await figures.publish(server.services.valkey, "other", other)
    found = [(row["what"], row["count"], row["names"]) for row in (await overview(server))["attention"]]
    assert found == [
        ("store", 1, ["objects"]),
        ("worker", 1, []),
        ("silent_process", 1, ["a-process"]),
        ("versions", 2, ["1.2.3", "1.2.4"]),
        ("config", 1, ["default/vendor_accounts/broken"]),
        ("breaker", 1, ["default/an-account"]),
        ("vendor", 1, ["llm/failing"]),
        ("mismatch", 1, []),
        ("webhook", 2, []),
        ("mail", 1, ["send_mail"]),
        ("job", 2, ["pay_out", "refund_card"]),
        ("sink", 3, ["default/crm"]),
    ]


async def break_config(server: Server) -> None:
    """Leave a config whose value the kind does not accept any more."""
    services = server.services
    value = {"platform": "vendor_b_llm", "base_url": "http://127.0.0.1:1"}
    await services.configs.put("default", "vendor_accounts", "broken", value, author="test", origin=COMMAND)
    await execute(
        server,
        """update config_revisions set value = '{"platform": 1}' where name = 'broken'""",
        "update configs set change = change + 1000 where name = 'broken'",
    )
    await services.configs.refresh()


async def test_the_cost_of_today_is_in_the_currency_of_the_app(server: Server) -> None:
    await execute(server, ATTEMPTS)
    assert (await overview(server))["cost"] == [{"currency": "USD", "amount": "0.0250"}]
