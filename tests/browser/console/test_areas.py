"""The console: the overview, money, engagement and operations, whose texts by vendors and users are no markup."""

import re
from typing import Any

from playwright.async_api import Browser, Page, expect

from app.process.figures import publishing_figures
from tests.browser.console.console_page import DESKTOP, LAYOUTS, PHONE, SCRIPT, check, execute, viewing
from tests.browser.page_faults import PageFaults
from tests.running.servers import Server

NEEDS_EDITOR = "Data of users needs the role editor."
VIEWED = {
    "users": NEEDS_EDITOR,
    "money/withdrawals": "No withdrawals.",
    "engagement/suppressions": NEEDS_EDITOR,
    "operations/operators": "Operators are managed with the role admin.",
}
"""Areas with actions, and what they show to a viewer instead. Other tests may have made withdrawals."""


async def test_the_overview_is_live(page: Page, server: Server) -> None:
    async with publishing_figures(server.services):
        await expect(page.get_by_role("heading", name="Overview")).to_be_visible()
        await expect(page.get_by_text("Live", exact=True)).to_be_visible()
        await expect(page.get_by_role("table", name="Server processes")).to_contain_text("Serving")
        async with server.http.get(f"{server.url}/bp/asset") as response:
            assert response.status == 400
        await expect(page.get_by_role("table", name="Errors")).to_contain_text("invalid_session")
        await check(page, "overview")


async def test_a_failed_webhook_is_read_and_replayed(page: Page, server: Server) -> None:
    uid, _ = await server.login()
    await execute(
        server,
        "insert into webhooks (webhook_id, app_id, source, config, event_id, headers, body, received_at, status,"
        " error) values ($1, 'default', 'walletpay', 'c', $2, $3, $4, now(), 'failed', $2)",
        uid, SCRIPT, {"X-Header": SCRIPT}, f'{{"text": "{SCRIPT}"}}'.encode(),
    )  # fmt: skip
    await execute(
        server,
        "insert into payment_mismatches (app_id, platform, kind, subject, detail, found_at)"
        " values ('default', 'walletpay', 'refund_failed', $1, $1, now())",
        SCRIPT,
    )
    await page.get_by_role("link", name="Money", exact=True).click()
    await check(page, "money")
    for tab in ("Subscriptions", "Withdrawals", "Mismatches", "Webhooks"):
        await page.get_by_role("link", name=tab, exact=True).click()
        await expect(page.locator(".loaded")).to_be_visible()
        await check(page, f"money-{tab.lower()}")
    await page.get_by_label("Status").select_option("failed")
    await expect(page).to_have_url(re.compile("status=failed"))
    async with page.expect_download() as download:
        await page.get_by_role("button", name="Export CSV").click()
    assert SCRIPT in (await (await download.value).path()).read_text()
    await page.get_by_role("table", name="Webhooks").get_by_role("link", name="walletpay").first.click()
    await expect(page.get_by_label("Body")).to_contain_text(SCRIPT)
    await check(page, "webhook")
    for size in LAYOUTS:
        await page.set_viewport_size(size)
        await page.get_by_role("button", name="Replay").click()
        await page.get_by_role("dialog").get_by_label("Reason").fill("The config is corrected")
        await page.get_by_role("dialog").get_by_role("button", name="Replay").click()
        await expect(page.get_by_role("dialog")).to_have_count(0)
        await expect(page.get_by_text("It is being processed again.")).to_be_visible()


async def test_the_ledger_is_checked(page: Page, server: Server) -> None:
    await page.goto(f"{server.url}/console#/money/ledger")
    await page.get_by_role("button", name="Check the ledger").click()
    await expect(page.get_by_role("status")).to_contain_text("ledger")
    await check(page, "ledger")


async def test_engagement_lists_what_vendors_have_said(page: Page, server: Server) -> None:
    uid, _ = await server.login()
    await execute(
        server,
        "insert into predictions (prediction_id, app_id, uid, strategy, account, body, is_awaited, host_id, status,"
        " error, created_at, ended_at)"
        " values ($1, 'default', $1, $2, $2, '{}', false, $2, 'failed', $2, now(), now())",
        uid, SCRIPT,
    )  # fmt: skip
    areas = page.get_by_role("navigation", name="Areas")
    await areas.get_by_role("link", name="Engagement").click()
    for tab in ("Leaderboards", "Emails", "Suppressions", "Predictions", "Images"):
        await page.locator("#content").get_by_role("link", name=tab, exact=True).click()
        await expect(page.locator(".loaded")).to_be_visible()
        if tab == "Predictions":
            await expect(page.get_by_text(SCRIPT).first).to_be_visible()
        await check(page, f"engagement-{tab.lower()}")
    await page.get_by_role("link", name="Suppressions", exact=True).click()
    await page.get_by_role("button", name="Suppress an address").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Address").fill("ada@example.com")
    await dialog.get_by_label("Reason").fill("Asked by letter")
    await dialog.get_by_role("button", name="Suppress an address").click()
    await expect(page.get_by_text("ada@example.com")).to_be_visible()


async def test_operations_show_readiness_the_audit_log_and_operators(page: Page, server: Server) -> None:
    await page.get_by_role("link", name="Operations").click()
    await expect(page.get_by_role("table", name="Readiness")).to_contain_text("PostgreSQL")
    await check(page, "operations")
    await page.get_by_role("link", name="Audit log").click()
    await page.get_by_label("What was done").select_option("config.put")
    await expect(page.get_by_role("table", name="Audit log")).to_contain_text("changed a config")
    await check(page, "audit")
    await page.get_by_role("link", name="Operators").click()
    for name, size in (("grace", DESKTOP), ("heidi", PHONE)):
        await page.set_viewport_size(size)
        await page.get_by_role("button", name="Add an operator").click()
        await page.get_by_role("dialog").get_by_label("Name").fill(name)
        await page.get_by_role("dialog").get_by_label("Token expires").fill("2090-01-01T12:00")
        await page.get_by_role("dialog").get_by_label("Reason").fill("On call")
        await page.get_by_role("dialog").get_by_role("button", name="Add an operator").click()
        await expect(page.get_by_text("parley_op_")).to_be_visible()
        await expect(page.get_by_role("row").filter(has_text=name)).to_contain_text("2090")
    await check(page, "operators")


async def test_a_draft_is_tried_before_it_is_published(page: Page, server: Server, fixed_strategy: Any) -> None:
    name = await fixed_strategy(f"Hello {SCRIPT}")
    await page.goto(f"{server.url}/console#/configs/default/conversation/{name}")
    await page.get_by_role("button", name="Try", exact=True).click()
    await page.get_by_role("button", name="Try it").click()
    await expect(page.get_by_text(f"Hello {SCRIPT}", exact=True)).to_be_visible()
    await expect(page.get_by_text("First output")).to_be_visible()
    await check(page, "trial")
    await page.set_viewport_size(PHONE)
    async with page.expect_response("**/try"):
        await page.get_by_role("button", name="Try it").click()
    await expect(page.get_by_text(f"Hello {SCRIPT}", exact=True)).to_be_visible()


async def test_an_email_is_previewed_while_its_variables_change(page: Page, server: Server, put: Any) -> None:
    await put("mail_accounts", "drafts", {"host": "127.0.0.1", "port": 1, "tls": "none", "from": "a@example.com"})
    value = {
        "subject": "Hi {{.CustomVariables.name}}",
        "text": "Dear {{.CustomVariables.name}}",
        "mail_accounts": ["drafts"],
    }
    await put("mail", "hello", value)
    await page.goto(f"{server.url}/console#/configs/default/mail/hello")
    await page.get_by_role("button", name="Try", exact=True).click()
    await page.get_by_label("name", exact=True).fill(SCRIPT)
    await expect(page.get_by_role("heading", name=f"Hi {SCRIPT}")).to_be_visible()
    await check(page, "mail-preview")


async def test_a_viewer_sees_no_action(chromium: Browser, server: Server, page_faults: PageFaults) -> None:
    async with viewing(chromium, server, page_faults) as page:
        for area, shown in VIEWED.items():
            await page.goto(f"{server.url}/console#/{area}")
            await expect(page.get_by_text(shown).or_(page.get_by_role("table", name="Withdrawals"))).to_be_visible()
            for action in ("Grant a product", "Settle", "Suppress an address", "Add an operator"):
                await expect(page.get_by_role("button", name=action)).to_have_count(0)
