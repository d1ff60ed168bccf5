"""The console: costs, limits, failed logins, and what a person owns or what was erased."""

from uuid import uuid4

from playwright.async_api import Page, expect

from app.process.figures import FiguresOfProcess
from storage.operators import figures
from streams.refusals import REFUSED
from streams.wire.ids import new_id
from tests.browser.console.console_page import SCRIPT, check, execute
from tests.running.servers import ADMIN_TOKEN, Server


async def test_costs_are_added_up_by_vendor_and_model(page: Page, server: Server) -> None:
    for model, price in (("small", "0.25"), ("large", "1.50")):
        await execute(
            server,
            "insert into attempts (app_id, stream_id, number, uid, stage, strategy, vendor, model, outcome,"
            " elapsed_ms, input_unit, output_unit, price, usage_source)"
            " values ('default', $1, 1, 'u', 'llm', 's', $2, $3, 'won', 5, 1, 1, $4::text::numeric, 'vendor')",
            new_id(), f"costly {SCRIPT}", model, price,
        )  # fmt: skip
    await page.get_by_role("link", name="Operations").click()
    await page.get_by_role("link", name="Costs").click()
    await page.get_by_label("Period").select_option("7")
    vendors = page.get_by_role("table", name="Vendor")
    await expect(vendors.get_by_role("row").filter(has_text=f"costly {SCRIPT}")).to_contain_text("$1.75")
    await check(page, "costs")
    await page.get_by_label("Add up by").select_option("model")
    models = page.get_by_role("table", name="Model")
    await expect(models.get_by_role("row").filter(has_text="large")).to_contain_text("$1.50")


async def test_limits_that_have_refused_something_say_where_they_are_set(page: Page, server: Server) -> None:
    own = FiguresOfProcess(server.services)
    REFUSED.add(3, "streams_per_user")
    await figures.publish(server.services.valkey, new_id(), own.read())
    await page.goto(f"{server.url}/console#/operations/limits")
    row = page.get_by_role("table", name="Limits").get_by_role("row").filter(has_text="streams_per_user")
    await expect(row).to_contain_text("Config limits")
    await check(page, "limits")


async def test_failed_logins_are_found_by_their_request(page: Page, server: Server) -> None:
    request = uuid4().hex
    await execute(
        server,
        "insert into login_failures (failure_id, app_id, request_id, operation, platform, social_id, error_type,"
        " steps, failed_at) values ($1, 'default', $2, 'login', 'google', $3, 'auth_failed', $4, now())",
        new_id(), request, f"ada {SCRIPT}", [{"step": "audience", "seen": SCRIPT, "allowed": ["one"]}],
    )  # fmt: skip
    await page.goto(f"{server.url}/console#/operations/logins")
    await page.get_by_label("Request", exact=True).fill(request)
    await page.get_by_label("Request", exact=True).press("Enter")
    table = page.get_by_role("table", name="Failed logins")
    await expect(table).to_contain_text(f"ada {SCRIPT}")
    await table.get_by_text("1 check").click()
    await expect(table).to_contain_text("audience")
    await check(page, "failed-logins")


async def test_the_ledger_of_a_person_is_read_and_an_export_needs_a_reason(page: Page, server: Server) -> None:
    uid, _ = await server.login()
    product = {"type": "consumable", "asset": "coins", "quantity": 100}
    headers = {"Authorization": f"Bearer {ADMIN_TOKEN}", "X-Parley-Reason": "a gift", "Idempotency-Key": uid}
    admin = f"{server.url}/admin/api"
    async with server.http.put(
        f"{admin}/configs/default/products/gift", json={"value": product}, headers=headers
    ) as answer:
        assert answer.status == 200, await answer.text()
    async with server.http.post(
        f"{admin}/users/default/{uid}/assets", json={"product": "gift"}, headers=headers
    ) as answer:
        assert answer.status == 200, await answer.text()
    await page.goto(f"{server.url}/console#/users/default/{uid}")
    await page.get_by_role("button", name="Export data").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog.get_by_role("button", name="Export data")).to_be_disabled()
    await dialog.get_by_label("Reason").fill("Asked by letter")
    await dialog.get_by_role("button", name="Export data").click()
    await expect(page.get_by_role("button", name="Exporting")).to_be_disabled()
    await page.get_by_role("link", name="Ledger entries").click()
    await expect(page.get_by_role("table", name="Owns now")).to_contain_text("100")
    await expect(page.get_by_role("table", name="Ledger entries")).to_contain_text("coins")
    await check(page, "ledger-entries")


async def test_the_receipt_of_an_erased_person_is_read(page: Page, server: Server) -> None:
    uid, _ = await server.login()
    headers = {"Authorization": f"Bearer {ADMIN_TOKEN}", "X-Parley-Reason": "asked"}
    erase = f"{server.url}/admin/api/users/default/{uid}/erase"
    async with server.http.post(erase, json={}, headers=headers) as answer:
        assert answer.status == 200, await answer.text()
    await page.goto(f"{server.url}/console#/users/default/{uid}")
    await page.get_by_role("link", name="Open the receipt").click()
    await expect(page.get_by_role("heading", name="Erasure receipt")).to_be_visible()
    await expect(page.get_by_role("table", name="Deleted")).to_contain_text("sessions")
    async with page.expect_download() as download:
        await page.get_by_role("button", name="Download the signed receipt").click()
    assert (await (await download.value).path()).read_text().count(".") == 2
    await check(page, "receipt")
