"""The console: an editor finds out why an order has granted nothing, and changes an account with a reason."""

import re

from playwright.async_api import Page, expect

from tests.browser.console.console_page import PHONE, SCRIPT, check, execute
from tests.running.servers import Server


async def buyer(server: Server) -> str:
    """A user with an order that the payer has not approved, whose texts are scripts."""
    uid, _ = await server.login()
    await execute(server, "update users set name = $2 where uid = $1", uid, f"Ada {SCRIPT}")
    await execute(
        server,
        "insert into identities (app_id, platform, social_id, uid, create_time)"
        " values ('default', 'email', $2, $1, now())",
        uid, f"{uid}@example.com",
    )  # fmt: skip
    await execute(
        server,
        "insert into wallet_orders (row_id, app_id, uid, config, bp_product_id, product, amount, currency,"
        " return_url, cancel_url, order_id, status, created_at)"
        " values ($1, 'default', $1, 'Default', $2, '{}', 199, 'usd', '', '', $3, 'CREATED',"
        " now() - interval '1 day')",
        uid, f"coins{SCRIPT}", f"ORDER{uid}",
    )  # fmt: skip
    await execute(
        server,
        "insert into login_failures (failure_id, app_id, request_id, operation, platform, social_id, uid,"
        " error_type, steps, failed_at) values ($1, 'default', $2, 'login', 'email', $2, $1, $2, '[]', now())",
        uid, SCRIPT,
    )  # fmt: skip
    await execute(
        server,
        "insert into conversations (app_id, conversation_id, uid, record_count) values ('default', $1, $1, 1)", uid,
    )  # fmt: skip
    await execute(
        server,
        "insert into conversation_records (app_id, conversation_id, record_id, status, strategy, content,"
        " stream_id) values ('default', $1, 1, 'complete', $3, $2, 's')",
        uid, [{"role": "user", "content": [{"text": f"Tell me {SCRIPT}"}]}], SCRIPT,
    )  # fmt: skip
    return uid


async def test_an_editor_finds_out_why_an_order_gave_nothing(page: Page, server: Server) -> None:
    uid = await buyer(server)
    await page.get_by_role("link", name="Users", exact=True).click()
    await expect(page.get_by_role("heading", name="Users")).to_be_visible()
    await check(page, "users")
    await page.get_by_role("searchbox", name="Search").fill(f"{uid[:20]}".upper())
    await page.get_by_role("searchbox", name="Search").press("Enter")
    named = page.get_by_role("link", name=f"Ada {SCRIPT}")
    await expect(named).to_have_count(1)  # Before the answer, all users are listed.
    await named.click()
    await expect(page.get_by_role("heading", name=f"Ada {SCRIPT}")).to_be_visible()
    await expect(page.get_by_text(f"request {SCRIPT}")).to_be_visible()
    await check(page, "user")
    await page.get_by_role("button", name="Money").click()
    await expect(page).to_have_url(re.compile("show=money"))
    await expect(page.get_by_role("link", name=f"Ordered coins{SCRIPT} for $1.99")).to_be_visible()
    await page.get_by_text("It has granted nothing.").get_by_role("link", name="Read why").click()
    await expect(page.get_by_text("The payer has not approved it, so nothing was paid.")).to_be_visible()
    await check(page, "order")


async def test_an_account_is_changed_with_a_reason(page: Page, server: Server) -> None:
    uid = await buyer(server)
    await page.goto(f"{server.url}/console#/users/default/{uid}")
    await page.get_by_role("button", name="End sessions").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog.get_by_role("button", name="End sessions")).to_be_disabled()
    await dialog.get_by_label("Reason").fill("Lost phone, 失くした")
    await check(page, "end-sessions")
    await dialog.get_by_role("button", name="End sessions").click()
    await expect(page.get_by_text("The sessions have ended.")).to_be_visible()
    await expect(page.get_by_text("developer ended the sessions")).to_be_visible()
    await expect(page.get_by_text("Lost phone, 失くした")).to_be_visible()
    await page.get_by_role("button", name="Freeze", exact=True).click()
    await dialog.get_by_label("Reason").fill("Fraud")
    await expect(dialog.get_by_role("heading", name=f"Freeze Ada {SCRIPT}?")).to_be_visible()
    await dialog.get_by_label(f"Type {uid}@example.com or {uid[-6:]} to confirm").fill(uid[-6:])
    await dialog.get_by_role("button", name="Freeze").click()
    await expect(page.get_by_text("The account is frozen.", exact=True)).to_be_visible()
    await check(page, "frozen")
    await page.get_by_role("button", name="Recover").click()
    await dialog.get_by_label("Reason").fill("Cleared")
    await dialog.get_by_role("button", name="Recover").click()
    await expect(page.get_by_text("The account is active again.")).to_be_visible()
    await page.set_viewport_size(PHONE)
    for button, name, said in (
        ("End sessions", "", "The sessions have ended."),
        ("Freeze", f"{uid}@example.com", "The account is frozen."),
        ("Recover", "", "The account is active again."),
    ):
        await page.get_by_role("button", name=button, exact=True).click()
        await dialog.get_by_label("Reason").fill("On the way")
        if name:
            await dialog.get_by_label(f"Type {name} or {uid[-6:]} to confirm").fill(name)
        await dialog.get_by_role("button", name=button).click()
        await expect(page.get_by_text(said, exact=True)).to_be_visible()


async def test_a_user_is_banned_until_a_day_and_the_ban_is_lifted(page: Page, server: Server) -> None:
    uid = await buyer(server)
    await execute(server, "update users set name = '' where uid = $1", uid)
    await page.goto(f"{server.url}/console#/users/default/{uid}")
    await expect(page.get_by_role("heading", name=f"{uid}@example.com")).to_be_visible()
    await expect(page.get_by_text(f"email: {uid}@example.com", exact=True)).to_be_visible()
    await page.get_by_role("button", name="Ban", exact=True).click()
    dialog = page.get_by_role("dialog")
    await expect(dialog.get_by_role("heading", name=f"Ban {uid}@example.com?")).to_be_visible()
    await dialog.get_by_label("Ban ends").fill("2090-01-01T12:00")
    await dialog.get_by_label("Reason").fill("Spam, スパム")
    await dialog.get_by_label(f"{uid[-6:]} to confirm").fill(uid[-6:])
    await dialog.get_by_role("button", name="Ban", exact=True).click()
    await expect(page.get_by_text("Reason: Spam, スパム")).to_be_visible()
    await expect(page.get_by_text("developer banned the user")).to_be_visible()
    await check(page, "banned")
    await page.goto(f"{server.url}/console#/users?status=banned")
    await expect(page.get_by_role("cell", name="Banned", exact=True)).to_be_visible()
    await page.goto(f"{server.url}/console#/users/default/{uid}")
    await lift(page)
    await page.set_viewport_size(PHONE)
    await page.get_by_role("button", name="Ban", exact=True).click()
    await dialog.get_by_label("Reason").fill("Spam again")
    await dialog.get_by_label(f"{uid[-6:]} to confirm").fill(uid[-6:])
    await dialog.get_by_role("button", name="Ban", exact=True).click()
    await expect(page.get_by_text("Reason: Spam again")).to_be_visible()
    await lift(page)


async def lift(page: Page) -> None:
    await page.get_by_role("button", name="Lift the ban").click()
    await page.get_by_role("dialog").get_by_label("Reason").fill("Appeal")
    await page.get_by_role("dialog").get_by_role("button", name="Lift the ban").click()
    await expect(page.get_by_text("The ban is lifted.", exact=True)).to_be_visible()


async def test_an_admin_reads_what_was_said(page: Page, server: Server) -> None:
    uid = await buyer(server)
    await page.goto(f"{server.url}/console#/users/default/{uid}")
    await page.get_by_role("link", name="Conversation of 1 turn").click()
    await expect(page.get_by_text(f"Tell me {SCRIPT}")).to_be_visible()
    await check(page, "conversation")
