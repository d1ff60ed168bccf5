"""The console: what an export as CSV contains, and what it says if it is not complete."""

import csv
import io
import re
from uuid import uuid4

from playwright.async_api import Page, Route, expect

from tests.browser.console.console_page import check, execute
from tests.browser.page_faults import PageFaults
from tests.running.servers import ADMIN_TOKEN, Server

PREDICTIONS = """
insert into predictions (prediction_id, app_id, uid, strategy, account, body, is_awaited, host_id, status, error,
    created_at, ended_at)
select id, 'default', $1, $1, 'a', '{}', false, id, 'failed', error, now(), now()
from unnest($2::text[]) with ordinality row (error, number),
    lateral (select left($1::text, -5) || to_char(number, 'FM00000') as id) named
"""
CELLS = {
    "a;=1+cmd|'/C calc'!A0;b": "a;'=1+cmd|'/C calc'!A0;b",
    'a;"=1+1"\t@SUM(1)\n-2+3': "a;'\"=1+1\"\t'@SUM(1)\n'-2+3",
    " =1+1": "' =1+1",
    "\uff1d1+1": "'\uff1d1+1",
    "-30.5": "-30.5",
    "low;-30;of 5 - 3 = 2": "low;-30;of 5 - 3 = 2",
}
"""Texts of a vendor, and what the file has in their place."""


async def exported(page: Page) -> str:
    async with page.expect_download() as download:
        await page.get_by_role("button", name="Export CSV").click()
    return (await (await download.value).path()).read_bytes().decode()


async def a_page_of_many(route: Route) -> None:
    """Plays a list that has more pages than anybody exports."""
    await route.fulfill(json={"tasks": [{"task_id": number} for number in range(100)], "next": "1"})


async def test_a_cell_is_no_formula_wherever_a_spreadsheet_splits_it(page: Page, server: Server) -> None:
    uid, _ = await server.login()
    await execute(server, PREDICTIONS, uid, list(CELLS))
    await page.goto(f"{server.url}/console#/engagement/predictions?strategy={uid}")
    await expect(page.get_by_role("table", name="Predictions")).to_contain_text("calc")
    rows = csv.DictReader(io.StringIO(await exported(page), newline=""))
    assert [row["error"] for row in rows] == [*reversed(CELLS.values())]


async def test_numbers_stay_numbers(page: Page, server: Server) -> None:
    uid, _ = await server.login()
    headers = {"Authorization": f"Bearer {ADMIN_TOKEN}", "X-Parley-Reason": "a gift"}
    product = f"counted-{uuid4().hex[:8]}"
    value = {"value": {"type": "consumable", "asset": "coins", "quantity": 100}}
    owned = f"users/default/{uid}/assets"
    for method, path, body in (
        ("PUT", f"configs/default/products/{product}", value),
        ("POST", owned, {"product": product}),
        ("PATCH", owned, {"name": "coins", "quantity": -30}),
    ):
        async with server.http.request(
            method,
            f"{server.url}/admin/api/{path}",
            json=body,
            headers={**headers, "Idempotency-Key": f"{method}-{uid}"},
        ) as answer:
            assert answer.status == 200, await answer.text()
    await page.goto(f"{server.url}/console#/users/default/{uid}/ledger")
    await expect(page.get_by_role("table", name="Ledger entries")).to_contain_text("-30")
    rows = csv.DictReader(io.StringIO(await exported(page), newline=""))
    assert [row["quantity"] for row in rows] == ["-30", "100"]


async def test_an_export_that_is_cut_or_fails_says_so(page: Page, server: Server, page_faults: PageFaults) -> None:
    page_faults.expected = ["ERR_INTERNET_DISCONNECTED"]
    uid, _ = await server.login()
    await execute(server, PREDICTIONS, uid, ["lost"])
    await page.route(re.compile("/predictions.*size=100"), a_page_of_many)
    await page.goto(f"{server.url}/console#/engagement/predictions?strategy={uid}")
    await expect(page.get_by_role("table", name="Predictions")).to_contain_text("lost")
    rows = list(csv.reader(io.StringIO(await exported(page))))
    assert len(rows) == 1 + 10_000
    await expect(page.get_by_text("The file has the first 10,000 rows.")).to_be_visible()
    await check(page, "csv-cut")
    await page.unroute_all()
    await page.context.set_offline(True)
    await page.get_by_role("button", name="Export CSV").click()
    said = page.get_by_role("alert")
    await expect(said).to_have_text("Nothing was exported. The server cannot be reached.")
    await page.context.set_offline(False)
    await check(page, "csv-failed")
