"""The console: the overview says first what needs attention, in words, with a link to where one acts."""

from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from playwright.async_api import Browser, expect

from app.process.figures import FiguresOfProcess
from app.settings import Settings
from storage.operators import figures
from tests.browser.console.console_page import check, execute, overview
from tests.browser.page_faults import PageFaults
from tests.running.another_server import another_server
from tests.running.servers import Databases, Server
from vendors.calls.metrics import BUCKETS_S

WORKER = "insert into procrastinate_workers default values"
CAUSES = """
with held as (
    insert into procrastinate_jobs (queue_name, task_name, status)
    values ('parley', 'send_mail', 'failed'), ('parley', 'pay_out', 'failed'), ('parley', 'pay_out', 'failed')
), found as (
    insert into payment_mismatches (app_id, platform, kind, subject, detail, found_at)
    values ('default', 'walletpay', 'refund_failed', 's', '', now())
), silent as (
    insert into processes (process, seen_at) values ('a-process', now() - interval '40 seconds')
)
insert into reported_events (event_id, app_id, sink, event, uid, happened_at, data, dead_at)
values ('e', 'default', 'crm', 'sign_up', 'u', now(), '{}', now())
"""
COST = """
insert into attempts (app_id, stream_id, number, uid, stage, strategy, vendor, outcome, elapsed_ms, input_unit,
    output_unit, price, usage_source)
values ('default', lpad(to_hex((extract(epoch from now()) * 1000)::bigint), 12, '0') || '0', 1, 'u', 'llm', 's',
    'v', 'won', 1, 1, 1, 0.0125, 'vendor')
"""
LINES = (
    "1 process has stopped reporting",
    "1 vendor fails in nearly all attempts",
    "1 payment does not agree with its platform",
    "1 email is held",
    "2 jobs are held",
    "1 event was not accepted by its sink",
)


def failing(server: Server) -> dict[str, Any]:
    """Return the figures of a process with one stream and a slow vendor that fails."""
    slow = [0] * (len(BUCKETS_S) - 2) + [9, 0, 0]
    return {
        **FiguresOfProcess(server.services).read(),
        "live": {"conversation": 1},
        "attempts": {"llm\tvendor_b_llm\tfailed": 900},
        "first_output": {"llm\tvendor_b_llm": slow},
    }


@pytest.fixture
def _forgotten_outages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget the stores that earlier tests of this process have taken away."""
    monkeypatch.setattr("storage.availability._unavailable", {})


@pytest.mark.usefixtures("_forgotten_outages")
async def test_the_overview_is_calm_until_something_needs_attention(
    chromium: Browser,
    page_faults: PageFaults,
    settings: Settings,
    databases: Databases,
    tmp_path: Path,
) -> None:
    async with databases.new(seeded=True) as database_url:
        own = replace(
            settings, database_url=database_url, redis_prefix=f"test-{uuid4().hex}:", data_dir=tmp_path / "data"
        )
        async with another_server(own) as server:
            await execute(server, WORKER)
            async with overview(chromium, server, page_faults) as page:
                await expect(page.get_by_text("Nothing needs attention.")).to_be_visible()
                await check(page, "overview-calm")
            for statement in (CAUSES, COST):
                await execute(server, statement)
        async with another_server(own) as server, overview(chromium, server, page_faults) as page:
            # This server has not read any figures yet, so it reads the new ones.
            await figures.publish(server.services.valkey, "another-process", failing(server))
            attention = page.get_by_role("region", name="Needs attention")
            for line in LINES:
                await expect(attention.get_by_role("link").filter(has_text=line)).to_be_visible()
            await expect(page.get_by_text("$0.0125")).to_be_visible()
            await expect(page.get_by_text("1 conversation · 0 readers")).to_be_visible()
            await expect(page.get_by_text("Vendor costs today")).to_be_visible()
            vendors = page.get_by_role("region", name="Vendors")
            await expect(vendors).to_contain_text("29.50")
            assert await vendors.evaluate("(shown) => shown.scrollWidth - shown.clientWidth") == 0
            await check(page, "overview-attention")
            await attention.get_by_role("link").filter(has_text="2 jobs are held").click()
            await expect(page.get_by_role("table", name="Why jobs are held")).to_contain_text("pay_out")
            await page.get_by_role("link", name="Apps and configs").click()
            await expect(page.get_by_role("cell", name="Command line").first).to_be_visible()
