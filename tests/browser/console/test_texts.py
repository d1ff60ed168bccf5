"""The console: what users, vendors and operators have written is shown as text, wherever it is shown.

A script that ran, or an image that was loaded, would be an error of the page, which fails the test.
"""

import csv
import io
from typing import Any
from uuid import uuid4

from playwright.async_api import Page, expect

from storage.operators import doctor_reports
from storage.operators.audit import COMMAND
from storage.operators.doctor_reports import Finding, Report, State
from streams.wire.ids import new_id
from tests.browser.console.console_page import SCRIPT, check, execute
from tests.browser.page_faults import PageFaults
from tests.running.servers import ADMIN_TOKEN, Server

FORMULA = "=cmd|' /C calc'!A0"
WITHDRAWAL = """
insert into withdrawals (withdrawal_id, app_id, uid, app_withdraw_id, request, config, platform, merchant_id,
    amount, currency, status, reason, payout_id, created_at, updated_at)
values ($1, 'default', $1, $2, '{}', $2, 'walletpay', 'm', 500, 'USD', 'FAILED', $2, $2, now(), now())
"""
IMAGE = """
insert into image_tasks (task_id, operation_id, app_id, uid, strategy, account, type, request, host_task_id, status,
    host_task, created_at, lost_at, ended_at)
values ($1, $1, 'default', $1, $2, $2, 'imagine', '{}', $2, 'failed', $3, now(), now(), now())
"""
PREDICTION = """
insert into predictions (prediction_id, app_id, uid, strategy, account, body, is_awaited, host_id, status, error,
    created_at, ended_at)
values ($1, 'default', $1, $2, 'a', '{}', false, 'h', 'failed', $3, now(), now())
"""
ATTEMPT = """
insert into attempts (app_id, stream_id, number, uid, stage, strategy, vendor, outcome, message, elapsed_ms,
    input_unit, output_unit, price, usage_source)
values ('default', $1, 1, $2, 'llm', $3, $3, 'failed', $3, 5, 1, 1, 0, 'vendor')
"""
WITH_SCRIPT = "<p>Dear {{.CustomVariables.name}}</p><script>parent.document.title = 'taken'</script>"


async def test_what_vendors_have_said_is_text(page: Page, server: Server, page_faults: PageFaults) -> None:
    page_faults.expected = [
        "404.*/admin/api/streams/default/"
    ]  # The stream has ended: only its attempts are stored.
    uid, _ = await server.login()
    stream = new_id()
    await execute(server, WITHDRAWAL, uid, SCRIPT)
    await execute(server, IMAGE, uid, SCRIPT, {"failReason": f"reason {SCRIPT}"})
    await execute(server, ATTEMPT, stream, uid, f"refused {SCRIPT}")
    for address, shown in {
        "money/withdrawals?state=failed": SCRIPT,
        "engagement/images?status=failed": f"reason {SCRIPT}",
        f"streams/default/{stream}": f"refused {SCRIPT}",
        f"users/default/{uid}": SCRIPT,
    }.items():
        await page.goto(f"{server.url}/console#/{address}")
        await expect(page.get_by_text(shown).first).to_be_visible()
        await check(page, f"text-{address.partition('?')[0].split('/')[1]}")


async def test_the_report_of_the_doctor_is_text_and_what_is_broken_comes_first(page: Page, server: Server) -> None:
    good = Finding(area="postgres", point="version", state=State.GOOD, seen="17")
    broken = Finding(area="mail", point=SCRIPT, state=State.BROKEN, seen=SCRIPT, why=f"why {SCRIPT}", fix=SCRIPT)
    report = Report(checked_at="2026-01-01T00:00:00Z", host=SCRIPT, public_url="", findings=[good, broken])
    await doctor_reports.store(server.services.valkey, report)
    await page.set_viewport_size({"width": 390, "height": 844})
    await page.goto(f"{server.url}/console#/operations")
    await page.get_by_role("link", name="Doctor").click()
    findings = page.get_by_role("table", name="Doctor").get_by_role("row")
    await expect(findings.nth(1)).to_contain_text(f"why {SCRIPT}")
    await expect(findings.nth(2)).to_contain_text("postgres")
    await expect(page.get_by_text(f"Checked from {SCRIPT}")).to_be_visible()
    await check(page, "doctor")


async def test_reasons_of_operators_are_text(page: Page, server: Server, put: Any) -> None:
    uid, _ = await server.login()
    headers = {"Authorization": f"Bearer {ADMIN_TOKEN}", "X-Parley-Reason": f"{uid} {SCRIPT}"}
    ended = f"{server.url}/admin/api/users/default/{uid}/end_sessions"
    async with server.http.post(ended, json={}, headers=headers) as answer:
        assert answer.status == 200, await answer.text()
    await page.goto(f"{server.url}/console#/operations/audit?action=user.end_sessions&name={uid}")
    await expect(page.get_by_role("table", name="Audit log")).to_contain_text(SCRIPT)
    name = f"scripted-{uuid4().hex[:8]}"
    await put("products", name, {"type": "consumable", "asset": "coins", "quantity": 1})
    await server.services.configs.put(
        "default", "products", name, {"type": "consumable", "asset": "coins", "quantity": 2},
        author=SCRIPT, origin=COMMAND, comment=f"comment {SCRIPT}",
    )  # fmt: skip
    await page.goto(f"{server.url}/console#/configs/default/products/{name}")
    await page.get_by_role("button", name="History").click()
    await expect(page.get_by_role("table", name="History")).to_contain_text(f"comment {SCRIPT}")
    await page.get_by_role("button", name="Compare").first.click()
    await expect(page.locator("dl.changes")).to_contain_text("quantity")
    await check(page, "scripted-history")


async def test_the_warning_of_a_config_is_text(page: Page, server: Server, put: Any) -> None:
    await put("vendor_accounts", "warned", {"platform": "scripted"})
    await put("conversation", "warned", {"chat": {"account": "warned"}, "speech": SCRIPT})
    await page.goto(f"{server.url}/console#/configs/default/conversation/warned")
    await expect(page.get_by_role("note")).to_contain_text(SCRIPT)


async def test_the_html_of_an_email_runs_no_script(
    page: Page, server: Server, put: Any, page_faults: PageFaults
) -> None:
    page_faults.expected = ["Blocked script|Content Security Policy"]
    await put("mail_accounts", "safe", {"host": "127.0.0.1", "port": 1, "tls": "none", "from": "a@example.com"})
    await put("mail", "safe", {"subject": "Hi", "html": WITH_SCRIPT, "mail_accounts": ["safe"]})
    await page.goto(f"{server.url}/console#/configs/default/mail/safe")
    await page.get_by_role("button", name="Try", exact=True).click()
    await page.get_by_label("name", exact=True).fill(f"Ada {SCRIPT}")
    email = page.frame_locator("iframe[title='The HTML of the email']")
    await expect(email.get_by_text(f"Dear Ada {SCRIPT}")).to_be_visible()
    assert await page.title() != "taken"


async def test_a_spreadsheet_runs_no_cell_of_a_csv(page: Page, server: Server) -> None:
    uid, _ = await server.login()
    await execute(server, PREDICTION, uid, f"formulas-{uid}", FORMULA)
    await page.goto(f"{server.url}/console#/engagement/predictions?strategy=formulas-{uid}")
    await expect(page.get_by_role("table", name="Predictions")).to_contain_text(FORMULA)
    async with page.expect_download() as download:
        await page.get_by_role("button", name="Export CSV").click()
    text = (await (await download.value).path()).read_text()
    [row] = csv.DictReader(io.StringIO(text))
    assert row["error"] == f"'{FORMULA}"
