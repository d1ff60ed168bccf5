"""Guides in a browser: code is copied with a button, and on a phone the contents open over the page."""

import re
from typing import Any

import pytest
from playwright.async_api import Browser, expect

from tests.browser.accessibility import check_accessibility
from tests.browser.pictures import keep_picture
from tests.code.source_files import ROOT
from tests.running.servers import Server

DESK: dict[str, Any] = {"viewport": {"width": 1280, "height": 800}}
PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}
FIRST_BLOCK = re.compile(r"^```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


async def test_a_button_copies_each_block_of_code(chromium: Browser, server: Server) -> None:
    context = await chromium.new_context(**DESK, permissions=["clipboard-read", "clipboard-write"])
    page = await context.new_page()
    await page.goto(f"{server.url}/docs/guides/streams")
    buttons = page.locator("main").get_by_role("button", name="Copy")
    await expect(buttons).to_have_count(await page.locator("pre").count())
    await buttons.first.click()
    await expect(page.get_by_role("button", name="Copied")).to_be_visible()
    code = FIRST_BLOCK.search((ROOT / "docs/guides/streams.md").read_text())
    assert code is not None
    assert await page.evaluate("navigator.clipboard.readText()") == code[1]
    await context.close()


@pytest.mark.parametrize("guide", ["", "/strategies", "/clients/typescript"])
async def test_a_guide_fits_on_a_phone(chromium: Browser, server: Server, guide: str) -> None:
    context = await chromium.new_context(**PHONE)
    page = await context.new_page()
    await page.goto(f"{server.url}/docs/guides{guide}")
    assert await page.evaluate("document.documentElement.scrollWidth") == PHONE["viewport"]["width"]
    await check_accessibility(page)
    await expect(page.locator("#contents")).to_be_hidden()
    await page.get_by_role("button", name="Contents").tap()
    await expect(page.locator("#contents details[open]")).to_be_visible()
    await keep_picture(page, f"guides{guide.replace('/', '-')}-contents")
    await page.keyboard.press("Escape")
    await expect(page.locator("#contents")).to_be_hidden()
    await context.close()


async def test_the_talk_page_leads_to_the_first_guide(chromium: Browser, server: Server) -> None:
    context = await chromium.new_context(**PHONE)
    page = await context.new_page()
    await page.goto(server.url)
    await page.get_by_role("link", name="your first app").click()
    await expect(page.get_by_role("heading", level=1, name="Your first app")).to_be_visible()
    await context.close()
