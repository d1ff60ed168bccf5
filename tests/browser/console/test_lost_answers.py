"""The console: an action whose answer is lost can be repeated from its dialog, and has been done once."""

from typing import Any

import pytest
from playwright.async_api import Page, Route, expect

from tests.browser.console.console_page import check
from tests.browser.page_faults import PageFaults
from tests.running.servers import Server


async def _lose_answer(route: Route) -> None:
    await route.fetch()  # The server acts.
    await route.abort()


async def _repeated(page: Page, button: str) -> None:
    """Confirm the open dialog twice: the first answer is lost."""
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Reason").fill("It is right")
    await page.route("**/assets", _lose_answer, times=1)
    await dialog.get_by_role("button", name=button).click()
    await expect(dialog.get_by_role("alert")).to_contain_text("The server cannot be reached.")
    await expect(dialog.get_by_role("alert")).to_contain_text("it is done only once")
    await check(page, f"lost-answer-{button.split(maxsplit=1)[0].lower()}")
    await dialog.get_by_role("button", name=button).click()
    await expect(dialog).to_have_count(0)


async def _found(server: Server, uid: str) -> tuple[int, int]:
    """The units that a user has, and the number of changes in the audit log."""
    async with server.services.database.connection() as conn:
        units = await conn.fetchval("select quantity from assets where uid = $1 and name = 'gems'", uid)
        changes = await conn.fetchval("select count(*) from audit where kind = 'user' and name = $1", uid)
    return units, changes


@pytest.mark.parametrize("width", [1_280, 390])
async def test_what_is_granted_or_taken_again_after_a_lost_answer_is_granted_or_taken_once(
    page: Page, server: Server, put: Any, page_faults: PageFaults, width: int
) -> None:
    page_faults.expected = ["ERR_FAILED"]
    uid, _ = await server.login()
    await put("products", "a-present", {"type": "consumable", "asset": "gems", "quantity": 100})
    await page.goto(f"{server.url}/console#/users/default/{uid}")
    await page.set_viewport_size({"width": width, "height": 844})
    await page.get_by_role("button", name="Grant a product").click()
    await page.get_by_role("dialog").get_by_label("Product").select_option("a-present")
    await _repeated(page, "Grant a product")
    await expect(page.get_by_text("The product was granted.")).to_be_visible()
    assert await _found(server, uid) == (100, 1)

    await page.set_viewport_size({"width": width, "height": 844})
    await page.get_by_role("button", name="Adjust").click()
    await page.get_by_role("dialog").get_by_label("Units to add").fill("-30")
    await _repeated(page, "Adjust")
    await expect(page.get_by_text("The asset was adjusted.")).to_be_visible()
    assert await _found(server, uid) == (70, 2)

    await page.get_by_role("button", name="Adjust").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Units to add").fill("-1000")
    await dialog.get_by_label("Reason").fill("It is right")
    await dialog.get_by_role("button", name="Adjust").click()
    await expect(page.get_by_text("Only 70 units were taken, because the user had no more.")).to_be_visible()
