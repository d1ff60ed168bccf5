"""The console: an operator reads why jobs, events and payments have failed, and acts on one or on all of them."""

from collections.abc import AsyncIterator
from typing import Any

import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from tests.browser.console.console_page import DESKTOP, LAYOUTS, PHONE, SCRIPT, check, execute, viewing
from tests.browser.page_faults import PageFaults
from tests.running.servers import Server

HOLD = """
with held as (
    insert into procrastinate_jobs (queue_name, task_name, args, status, attempts)
    select 'parley', 'fetch_profile',
        jsonb_build_object('app_id', 'default', 'uid', $1::text, 'platform', $2::text), 'failed', 6
    from generate_series(1, 3) returning id
)
insert into job_failures (job_id, error_type, message, error_group, process, configs)
select id, 'backend unavailable', 'the platform answered 503 ' || $2, 'fetch_profile.0123456789', 'a-process',
    '[["default", "apps", "default"]]' from held
"""
SCHEDULED = """
insert into job_schedules (task, schedule)
values ('verify_ledger', '7 4 * * *'), ('check_payouts', '* * * * * */10')
on conflict do nothing
"""
EVENTS = """
insert into reported_events (event_id, app_id, sink, event, uid, happened_at, data, attempts, error, dead_at)
select 'event' || number, 'default', 'crm', 'sign_up', $1, now(), '{}', 9, 'sink answered 503 ' || $2, now()
from generate_series(1, 2) as numbers (number)
"""
MISMATCH = """
insert into payment_mismatches (app_id, platform, kind, subject, detail, found_at)
values ('default', 'walletpay', 'refund_failed', $1, $1, now())
"""
SECRET = "whsec_c2FuZGJveC4uLi4uLi4uLi4uLi4uLi4u"


@pytest_asyncio.fixture(loop_scope="session", autouse=True)
async def _emptied(server: Server) -> AsyncIterator[None]:
    """Delete what the tests have stored, after the page is closed."""
    yield
    for table in ("procrastinate_jobs", "job_schedules", "reported_events"):
        await execute(server, f"delete from {table}")


async def confirm(page: Page, button: str, reason: str, *, name: str = "") -> None:
    """Give the reason for an action whose dialog is open, and the name that it asks for."""
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Reason").fill(reason)
    if name:
        await dialog.get_by_label(f"Type {name} to confirm").fill(name)
    await dialog.get_by_role("button", name=button).click()
    await expect(dialog).to_have_count(0)


async def test_held_jobs_run_again_or_are_deleted_one_or_all_with_one_cause(page: Page, server: Server) -> None:
    uid, _ = await server.login()
    await execute(server, HOLD, uid, SCRIPT)
    await execute(server, SCHEDULED)
    await page.get_by_role("link", name="Jobs", exact=True).click()
    groups, jobs = (page.get_by_role("table", name=name) for name in ("Why jobs are held", "Held jobs"))
    await expect(groups).to_contain_text(f"the platform answered 503 {SCRIPT}")
    await expect(jobs.get_by_role("link", name="apps/default")).to_have_count(3)
    await check(page, "jobs-held")
    await jobs.get_by_text("Details").first.click()
    await expect(jobs.get_by_text("job.held job_id=").first).to_be_visible()
    await check(page, "jobs-details")
    await page.set_viewport_size(PHONE)
    await jobs.get_by_role("button", name="Run again").first.click()
    await confirm(page, "Run again", "The platform answers again")
    await expect(page.get_by_text("Done.")).to_be_visible()
    await expect(jobs.get_by_role("row")).to_have_count(3)  # With the heading.
    await groups.get_by_role("button", name="Run all again").click()
    await confirm(page, "Run all again", "The platform answers again")
    await expect(page.get_by_text("2 jobs were run again.")).to_be_visible()
    await expect(page.get_by_text("No job is held.")).to_be_visible()
    await check(page, "jobs-none")

    await page.get_by_role("link", name="Queues").click()
    await expect(page.get_by_role("table", name="Queues")).to_contain_text("Waiting")
    await check(page, "jobs-queues")
    await page.get_by_role("link", name="Schedules").click()
    await expect(page.get_by_role("table", name="Schedules")).to_contain_text("verify_ledger")
    await expect(page.get_by_text("No worker runs")).to_be_visible()
    await check(page, "jobs-schedules")

    await execute(server, HOLD, uid, SCRIPT)
    await page.set_viewport_size(PHONE)
    await page.goto(f"{server.url}/console#/jobs/held")
    await jobs.get_by_role("button", name="Delete", exact=True).first.click()
    await confirm(page, "Delete", "The user is gone")
    await expect(jobs.get_by_role("row")).to_have_count(3)
    await groups.get_by_role("button", name="Delete all").click()
    await confirm(page, "Delete all", "The users are gone", name="fetch_profile")
    await expect(page.get_by_text("No job is held.")).to_be_visible()


async def test_a_viewer_reads_why_and_changes_nothing(
    chromium: Browser, server: Server, page_faults: PageFaults, page: Page
) -> None:
    uid, _ = await server.login()
    for statement, values in ((HOLD, (uid, SCRIPT)), (EVENTS, (uid, SCRIPT)), (MISMATCH, (uid,))):
        await execute(server, statement, *values)
    async with viewing(chromium, server, page_faults) as own:
        for area, shown in (
            ("jobs", "answered 503"),
            ("engagement/sinks", "answered 503"),
            ("money/mismatches", "Open"),
        ):
            await own.goto(f"{server.url}/console#/{area}")
            await expect(own.get_by_role("cell").filter(has_text=shown).first).to_be_visible()
            for action in ("Run again", "Delete", "Run all again", "Deliver again", "Mark as settled"):
                await expect(own.get_by_role("button", name=action)).to_have_count(0)


async def test_a_cause_has_a_page_and_its_jobs_are_deleted_after_their_kind_is_typed(
    page: Page, server: Server
) -> None:
    uid, _ = await server.login()
    await execute(server, HOLD, uid, SCRIPT)
    await page.goto(f"{server.url}/console#/jobs")
    jobs = page.get_by_role("table", name="Held jobs")
    await jobs.get_by_role("button", name="Delete", exact=True).first.click()
    await confirm(page, "Delete", "The user is gone")
    await expect(jobs.get_by_role("row")).to_have_count(3)  # With the heading.
    await page.get_by_role("table", name="Why jobs are held").get_by_role("link").first.click()
    await expect(page.get_by_role("heading", name="Jobs with this cause")).to_be_visible()
    await check(page, "jobs-cause")
    await page.get_by_role("button", name="Delete all").click()
    await confirm(page, "Delete all", "The users are gone", name="fetch_profile")
    await expect(page.get_by_text("2 jobs were deleted.")).to_be_visible()
    await page.goto(f"{server.url}/console#/operations/audit?action=job.drop")
    await expect(page.get_by_text("The users are gone").first).to_be_visible()

    await execute(server, HOLD, uid, SCRIPT)
    await page.goto(f"{server.url}/console#/jobs")
    await jobs.get_by_role("button", name="Run again").first.click()
    await confirm(page, "Run again", "The platform answers again")
    await expect(jobs.get_by_role("row")).to_have_count(3)
    await page.get_by_role("button", name="Run all again").click()
    await confirm(page, "Run all again", "The platform answers again")
    await expect(page.get_by_text("No job is held.")).to_be_visible()


async def test_events_that_a_sink_did_not_accept_are_delivered_again(page: Page, server: Server, put: Any) -> None:
    uid, _ = await server.login()
    await put("events", "crm", {"url": "http://127.0.0.1:1/events", "secret": SECRET, "events": ["account"]})
    await execute(server, EVENTS, uid, SCRIPT)
    areas = page.get_by_role("navigation", name="Areas")
    await areas.get_by_role("link", name="Engagement").click()
    await page.get_by_role("link", name="Event sinks").click()
    await expect(page.get_by_role("table", name="Event sinks")).to_contain_text("Refuses events")
    await expect(page.get_by_text(f"sink answered 503 {SCRIPT}").first).to_be_visible()
    await check(page, "engagement-sinks")
    await page.get_by_role("button", name="Deliver again").first.click()
    await confirm(page, "Deliver again", "It is repaired")
    await expect(page.get_by_text("1 event is due now.")).to_be_visible()
    await page.set_viewport_size(PHONE)
    await page.get_by_role("button", name="Deliver all again").click()
    await confirm(page, "Deliver all again", "It is repaired")
    await expect(page.get_by_text("2 events are due now.")).to_be_visible()


async def test_a_mismatch_is_settled_with_what_was_done(page: Page, server: Server) -> None:
    uid, _ = await server.login()
    await execute(server, MISMATCH, f"{uid} {SCRIPT}")
    await execute(server, MISMATCH, other := uid[::-1])
    await page.goto(f"{server.url}/console#/money/mismatches?resolved=false&kind=refund_failed")
    for subject, size in zip((other, uid), LAYOUTS, strict=True):
        await page.set_viewport_size(size)
        row = page.get_by_role("row").filter(has_text=f"{subject[:8]}…{subject[-6:]}")
        await row.get_by_role("button", name="Mark as settled").click()
        await confirm(page, "Mark as settled", f"Refunded by hand {SCRIPT}")
        await expect(row).to_have_count(0)
    await page.set_viewport_size(DESKTOP)
    await page.get_by_label("State").select_option("true")
    await expect(row).to_contain_text(f"Refunded by hand {SCRIPT}")
    await expect(row.get_by_role("button", name="Mark as settled")).to_have_count(0)
    await check(page, "mismatches-settled")
