"""The console: an operator signs in, changes a config and finds no fault of accessibility on the way."""

import re
from collections.abc import AsyncIterator

import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from app.dev.console import console_link
from storage.operators import operators, totp
from storage.operators.audit import COMMAND
from storage.operators.operators import Role
from tests.browser.console.console_page import DESKTOP, PHONE, check, open_console
from tests.browser.page_faults import PageFaults
from tests.calendar.clock import epoch_s
from tests.running.servers import Server

_LEAVE_AT_ONCE = """
new MutationObserver((_, observer) => {
  if (!document.querySelector("nav")) return;
  observer.disconnect();
  location.hash = "#/operations";
}).observe(document, { childList: true, subtree: true });
"""
"""Changes the address as soon as the console has a menu, before the effects of its first rendering run."""


@pytest_asyncio.fixture(loop_scope="session")
async def page(chromium: Browser, server: Server, page_faults: PageFaults) -> AsyncIterator[Page]:
    async with open_console(chromium, server, page_faults) as opened:
        yield opened


async def test_an_operator_signs_in_with_an_authenticator(
    page: Page, server: Server, page_faults: PageFaults
) -> None:
    page_faults.expected = ["401"]
    async with server.services.database.transaction() as conn:
        _, token = await operators.add(conn, "ada", role=Role.VIEWER, expires_at=None, origin=COMMAND)
    await page.goto(f"{server.url}/console")
    await check(page, "sign-in")
    await page.get_by_label("Operator token").fill(token)
    await page.get_by_role("button", name="Continue").click()
    await check(page, "authenticator")
    secret = (await page.locator("code").inner_text()).replace(" ", "")
    await page.get_by_role("textbox", name="Code").fill(totp.code_at(secret, int(epoch_s()) // totp.STEP_S))
    await page.set_viewport_size(PHONE)
    await page.get_by_role("button", name="Continue").click()
    await expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    await page.set_viewport_size(DESKTOP)
    await page.get_by_role("button", name="Sign out").click()
    await expect(page.get_by_role("heading", name="Sign in")).to_be_visible()


async def test_an_address_that_changes_during_the_first_rendering_is_followed(page: Page, server: Server) -> None:
    await page.add_init_script(_LEAVE_AT_ONCE)
    await page.goto(f"{server.url}{console_link(server.services.keyring)}")
    await expect(page.get_by_role("heading", name="Operations")).to_be_visible()


async def test_a_config_is_changed_in_its_form_and_restored(page: Page, server: Server) -> None:
    await page.goto(f"{server.url}{console_link(server.services.keyring)}")
    await page.get_by_role("link", name="Apps and configs").click()
    await expect(page.get_by_role("heading", name="Apps and configs")).to_be_visible()
    await check(page, "configs")
    await page.get_by_label("Kind").first.select_option("apps")
    await expect(page).to_have_url(re.compile("kind=apps"))
    await expect(page.get_by_text("1 to 1 of 1")).to_be_visible()
    await page.get_by_role("link", name="default").click()
    title = page.get_by_label("title", exact=False).first
    await title.fill("Renamed")
    await expect(page.get_by_label("playground")).to_have_value("")
    await page.get_by_label("playground").select_option("Yes")
    await check(page, "config")
    await page.get_by_role("button", name="Review changes").click()
    await check(page, "review")
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_text("Saved as revision")).to_be_visible()
    await expect(page.get_by_text("Nothing has changed.")).to_be_visible()
    await expect(page.get_by_label("playground")).to_have_value("true")
    await page.get_by_role("button", name="History").click()
    await expect(page.get_by_role("table", name="History")).to_contain_text("developer")
    await page.get_by_role("button", name="Restore revision").first.click()
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_contain_text("Renamed")
    await check(page, "restore")
    await dialog.get_by_label("Why").fill("The old name is known")
    await dialog.get_by_role("button", name="Restore revision").click()
    await expect(page.get_by_text("was restored.")).to_be_visible()
    await page.get_by_role("button", name="Form").click()
    await expect(page.get_by_label("title", exact=False).first).not_to_have_value("Renamed")
    for area in ("Streams", "Jobs", "Money"):
        await page.get_by_role("link", name=area, exact=True).click()
        await expect(page.get_by_role("heading", name=area, level=1)).to_be_visible()
        await check(page, area.lower())
