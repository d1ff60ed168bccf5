"""The console: operators act on money, users, leaderboards, emails and each other, and the server has done it."""

from typing import Any
from uuid import uuid4

import pytest
from playwright.async_api import Browser, Page, Route, ViewportSize, expect

from storage.operators import operators
from storage.operators.audit import COMMAND
from storage.operators.operators import Role
from streams.wire.codec import dumps, loads
from streams.wire.ids import new_id
from tests.app.callers import work_off, working
from tests.browser.console.console_page import check, execute, viewing
from tests.browser.page_faults import PageFaults
from tests.running.servers import Server

DESKTOP, PHONE = ViewportSize(width=1_280, height=800), ViewportSize(width=390, height=844)
WITHDRAWAL = """
insert into withdrawals (withdrawal_id, app_id, uid, app_withdraw_id, request, config, platform, merchant_id,
    amount, currency, status, reason, payout_id, created_at, updated_at, submitted_at, unknown_at)
values ($1, 'default', $2, $3, '{}', 'default', 'walletpay', 'm', 500, 'USD', 'START', '', '', now(), now(), now(),
    now())
"""
PERIOD = """
with period as (
    insert into leaderboard_periods (app_id, board, starts_at, ends_at, descending, state, closed_at, rewarded_at)
    values ('default', $1, '2020-01-01Z', '2020-01-02Z', true, 'closed', '2020-01-02Z', '2020-01-02Z')
    returning period_id
), score as (
    insert into leaderboard_scores (period_id, app_id, uid, score, change, posted_at)
    select period_id, 'default', $2, 7, 1, '2020-01-01Z' from period
)
insert into leaderboard_rewards (period_id, app_id, uid, rank, score, product)
select period_id, 'default', $2, 1, 7, $3 from period
"""


async def act(page: Page, button: str, *, name: str = "", reason: str = "It is right", **fields: str) -> None:
    """Confirm the action of an open dialog, with the name that it asks for and its fields by their labels."""
    dialog = page.get_by_role("dialog")
    for label, value in fields.items():
        await dialog.get_by_label(label.replace("_", " ")).fill(value)
    await dialog.get_by_label("Reason").fill(reason)
    if name:
        await expect(dialog.get_by_role("button", name=button)).to_be_disabled()
        await dialog.get_by_label(f"Type {name} to confirm").fill(name)
    await dialog.get_by_role("button", name=button).click()
    await expect(dialog).to_have_count(0)


async def value_of(server: Server, statement: str, *values: Any) -> Any:
    async with server.services.database.connection() as conn:
        return await conn.fetchval(statement, *values)


async def test_a_withdrawal_with_an_unknown_result_is_settled_on_a_phone(page: Page, server: Server) -> None:
    uid, _ = await server.login()
    withdrawal, own = new_id(), f"payout-{uid[-8:]}"
    await execute(server, WITHDRAWAL, withdrawal, uid, own)
    await page.set_viewport_size(PHONE)
    await page.goto(f"{server.url}/console#/money/withdrawals?state=unknown")
    row = (
        page.get_by_role("row").filter(has=page.get_by_title(own)).or_(page.get_by_role("row").filter(has_text=own))
    )
    await row.get_by_role("button", name="Settle").click()
    await page.get_by_role("dialog").get_by_label("Outcome").select_option("failed")
    await check(page, "settle")
    await page.set_viewport_size(PHONE)
    await act(page, "Settle", name=own, reason="Its activity has no such payout")
    await expect(row).to_have_count(0)
    state = "select status || ' ' || (settled_at is not null) from withdrawals where withdrawal_id = $1"
    assert await value_of(server, state, withdrawal) == "FAILED true"
    entries = "select string_agg(kind, ' ') from withdrawal_entries where withdrawal_id = $1"
    assert await value_of(server, entries, withdrawal) == "void"
    await execute(server, WITHDRAWAL, other := new_id(), uid, paid := f"paid-{uid[-8:]}")
    await page.set_viewport_size(DESKTOP)
    await page.reload()
    await page.get_by_role("row").filter(has_text=uid[-6:]).get_by_role("button", name="Settle").click()
    await act(page, "Settle", name=paid, reason="Its activity has the payout")
    await expect(page.get_by_role("row").filter(has_text=uid[-6:])).to_have_count(0)
    assert await value_of(server, state, other) == "SUCCESS true"


async def test_a_product_is_granted_and_units_are_taken_away(page: Page, server: Server, put: Any) -> None:
    uid, _ = await server.login()
    await put("products", "a-present", {"type": "consumable", "asset": "gems", "quantity": 100})
    units = "select quantity from assets where app_id = 'default' and uid = $1 and name = 'gems'"
    await page.goto(f"{server.url}/console#/users/default/{uid}")
    await page.set_viewport_size(PHONE)
    await page.get_by_role("button", name="Grant a product").click()
    await page.get_by_role("dialog").get_by_label("Product").select_option("a-present")
    await act(page, "Grant a product")
    await expect(page.get_by_text("The product was granted.")).to_be_visible()
    assert await value_of(server, units, uid) == 100
    await page.get_by_role("button", name="Adjust").click()
    await act(page, "Adjust", Units_to_add="-30", reason="Granted too many")
    await expect(page.get_by_text("The asset was adjusted.")).to_be_visible()
    assert await value_of(server, units, uid) == 70
    await expect(page.get_by_text("Granted too many")).to_be_visible()
    await check(page, "adjusted")
    await page.get_by_role("button", name="Grant a product").click()
    await page.get_by_role("dialog").get_by_label("Product").select_option("a-present")
    await act(page, "Grant a product")
    await page.get_by_role("button", name="Adjust").click()
    await act(page, "Adjust", Units_to_add="5", reason="Granted too few")
    await expect(page.get_by_text("Granted too few")).to_be_visible()
    assert await value_of(server, units, uid) == 175


async def test_a_person_is_exported_and_then_erased(page: Page, server: Server) -> None:
    uid, token = await server.login()
    await page.goto(f"{server.url}/console#/users/default/{uid}")
    await page.get_by_role("button", name="Export data").click()
    await act(page, "Export data")
    await page.reload()
    await expect(page.get_by_role("button", name="Exporting")).to_be_disabled()
    async with working(server.services):
        await expect(page.get_by_role("button", name="Get a link to the export")).to_be_visible()
    await page.reload()
    await check(page, "exported")
    await page.get_by_role("button", name="Get a link to the export").click()
    await act(page, "Get a link to the export", reason="For the letter")
    await expect(page.get_by_role("button", name="Export again")).to_be_visible()
    async with page.expect_download() as download:
        await page.get_by_role("link", name="Download export").click()
    assert uid in dumps(loads((await (await download.value).path()).read_bytes())["account"]).decode()
    await page.set_viewport_size(PHONE)
    await page.reload()
    await page.get_by_role("button", name="Get a link to the export").click()
    await act(page, "Get a link to the export", reason="For the letter")
    await expect(page.get_by_role("link", name="Download export")).to_be_visible()
    await page.get_by_role("button", name="Erase").click()
    await act(page, "Erase", name=uid[-6:], reason="Asked by letter")
    await expect(page.get_by_text("The user is erased.")).to_be_visible()
    await expect(page.get_by_role("button", name="Grant a product")).to_have_count(0)
    async with server.http.get(f"{server.url}/bp/asset", headers={"X-Service-Session-Token": token}) as response:
        assert (await response.json())["error"]["error_type"] == "account.invalid_session"
    await check(page, "erased")
    other, _ = await server.login()
    await page.set_viewport_size(PHONE)
    await page.goto(f"{server.url}/console#/users/default/{other}")
    await page.get_by_role("button", name="Export data").click()
    await act(page, "Export data")
    await expect(page.get_by_role("button", name="Exporting")).to_be_disabled()
    await page.set_viewport_size(DESKTOP)

    async def answer_late(route: Route) -> None:
        answer = await route.fetch()
        await page.clock.run_for(5_000)  # The page asks for the state of the export each second.
        await route.fulfill(response=answer)

    await page.clock.install()
    await page.route("**/erase", answer_late)
    await page.get_by_role("button", name="Erase").click()
    await act(page, "Erase", name=other[-6:], reason="Asked by letter")
    await expect(page.get_by_text("The user is erased.")).to_be_visible()
    await page.clock.run_for(5_000)


async def test_an_editor_is_told_who_may_export(chromium: Browser, server: Server, page_faults: PageFaults) -> None:
    uid, _ = await server.login()
    async with viewing(chromium, server, page_faults, role=Role.EDITOR) as page:
        await page.goto(f"{server.url}/console#/users/default/{uid}")
        await expect(page.get_by_role("button", name="Export data")).to_be_disabled()
        await expect(page.get_by_text("An export contains conversations: it needs the role admin.")).to_be_visible()
        await check(page, "export-for-editors")


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
async def test_an_operator_gets_another_role_and_token_and_is_removed(
    page: Page, server: Server, size: ViewportSize
) -> None:
    name = f"mary-{uuid4().hex[:8]}"
    async with server.services.database.transaction() as conn:
        _, first = await operators.add(conn, name, role=Role.VIEWER, expires_at=None, origin=COMMAND)

    async def status(token: str) -> int:
        headers = {"Authorization": f"Bearer {token}"}
        async with server.http.get(f"{server.url}/admin/api/self", headers=headers) as response:
            return response.status

    assert await status(first) == 200
    await page.set_viewport_size(size)
    await page.goto(f"{server.url}/console#/operations/operators")
    row = page.get_by_role("row").filter(has_text=name)
    await row.get_by_role("button", name="Change role").click()
    await page.get_by_role("dialog").get_by_label("Role").select_option("editor")
    await act(page, "Change role")
    await expect(row).to_contain_text("Editor")
    assert await value_of(server, "select role from operators where name = $1", name) == "editor"
    await row.get_by_role("button", name="New token").click()
    await act(page, "New token", name=name)
    second = await page.locator("code").filter(has_text="parley_op_").inner_text()
    assert (await status(first), await status(second)) == (401, 200)
    await row.get_by_role("button", name="Remove").click()
    await act(page, "Remove", name=name)
    await expect(row).to_have_count(0)
    assert await status(second) == 401


async def test_the_rewards_of_a_period_run_again(page: Page, server: Server, put: Any) -> None:
    uid, _ = await server.login()
    board, product = f"weekly-{uid[-6:]}", f"prize-{uid[-6:]}"
    await put("products", product, {"type": "consumable", "asset": "medals", "quantity": 3})
    await put(
        "leaderboards", board, {"reset": {"every": "day"}, "rewards": [{"from": 1, "to": 1, "product": product}]}
    )
    await execute(server, PERIOD, board, uid, product)
    await page.get_by_role("navigation", name="Areas").get_by_role("link", name="Engagement").click()
    await page.get_by_role("table", name="Leaderboards").get_by_role("link", name=board, exact=True).click()
    await expect(page.get_by_role("table", name="Periods")).to_contain_text("Closed")
    await check(page, "board")
    await page.set_viewport_size(PHONE)
    await page.get_by_role("table", name="Periods").get_by_role("link").first.click()
    await expect(page.get_by_role("table", name="Ranks")).to_contain_text("7")
    await expect(page.get_by_text("0 of 1 granted")).to_be_visible()
    await check(page, "period")
    await page.set_viewport_size(PHONE)
    await page.get_by_role("button", name="Run rewards again").click()
    await act(page, "Run rewards again", name=board)
    await expect(page.get_by_text("The rewards run now.")).to_be_visible()
    await work_off(server.services)
    await page.reload()
    await expect(page.get_by_text("1 of 1 granted")).to_be_visible()
    medals = "select quantity from assets where app_id = 'default' and uid = $1 and name = 'medals'"
    assert await value_of(server, medals, uid) == 3
    await page.set_viewport_size(DESKTOP)
    await page.get_by_role("button", name="Run rewards again").click()
    await act(page, "Run rewards again", name=board)
    await expect(page.get_by_text("The rewards run now.")).to_be_visible()
    await work_off(server.services)
    assert await value_of(server, medals, uid) == 3


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
async def test_an_address_is_suppressed_and_allowed_again(page: Page, server: Server, size: ViewportSize) -> None:
    address = f"{uuid4().hex[:8]}@example.com"
    stored = "select count(*) from suppressions where app_id = 'default' and address = $1"
    await page.set_viewport_size(size)
    await page.goto(f"{server.url}/console#/engagement/suppressions")
    await page.get_by_role("button", name="Suppress an address").click()
    await act(page, "Suppress an address", Address=address)
    row = page.get_by_role("row").filter(has_text=address)
    await expect(row).to_contain_text("By an operator")
    assert await value_of(server, stored, address) == 1
    await row.get_by_role("button", name="Allow again").click()
    await act(page, "Allow again", reason="Asked for the emails")
    await expect(row).to_have_count(0)
    assert await value_of(server, stored, address) == 0


async def test_a_test_of_an_email_is_sent(page: Page, server: Server, put: Any) -> None:
    await put("mail_accounts", "post", {"host": "127.0.0.1", "port": 1, "tls": "none", "from": "a@example.com"})
    await put("mail", "greeting", {"subject": "Hi", "text": "Dear", "mail_accounts": ["post"]})
    await page.goto(f"{server.url}/console#/configs/default/mail/greeting")
    await page.set_viewport_size(PHONE)
    await page.get_by_role("button", name="Try", exact=True).click()
    for name, size in (("ada", PHONE), ("bob", DESKTOP)):
        await page.set_viewport_size(size)
        await page.get_by_role("button", name="Send a test").click()
        await act(page, "Send a test", Address=f"{name}@example.com")
        await expect(page.get_by_text(f"The email is on its way to {name}@example.com.")).to_be_visible()
    job = "select count(*) from procrastinate_jobs where task_name = 'send_mail' and args ->> 'app_id' = 'default'"
    assert await value_of(server, job) == 2
    await execute(server, "delete from procrastinate_jobs where task_name = 'send_mail'")


async def test_an_operator_signs_out_for_good(page: Page, server: Server, page_faults: PageFaults) -> None:
    page_faults.expected = ["401"]
    cookies = await page.context.cookies()
    await page.set_viewport_size(PHONE)
    await page.get_by_role("button", name="Menu").click()
    await page.get_by_role("button", name="Sign out").click()
    await expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    await page.context.add_cookies(cookies)
    await page.reload()
    await expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
