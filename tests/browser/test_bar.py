"""All pages begin with one bar: the logo and the links to the other pages, of which the current one is marked."""

import re
from typing import Any
from urllib.parse import unquote, urljoin

import pytest
from playwright.async_api import Browser, Page, expect

from tests.browser.accessibility import check_accessibility
from tests.browser.pictures import keep_picture
from tests.running.servers import Server

PAGES = {
    "/": "Talk",
    "/dev/accounts": "Accounts",
    "/dev/payments": "Payments",
    "/dev/engagement": "Engagement",
    "/dev/mail": "Emails",
    "/dev/sms": "SMS",
    "/docs/guides": "Guides",
    "/docs": "API reference",
    "/console": "Console",
}
DESK: dict[str, Any] = {"viewport": {"width": 1280, "height": 800}}
PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}
HEIGHT_PX = 56
_CLIPPED = """() => [...document.querySelectorAll(".page-bar a, .page-bar button")]
    .filter((part) => part.checkVisibility() && part.scrollWidth > part.clientWidth + 1 && part.clientWidth > 0)
    .map((part) => part.textContent)"""
"""Returns the texts of the bar that are wider than their place."""


async def open_page(page: Page, server: Server, path: str) -> None:
    await page.goto(server.url + path, wait_until="domcontentloaded")
    await expect(page.locator(".page-bar .page-name")).to_be_visible()
    if path not in {"/docs", "/docs/guides", "/console"} and "mail" not in path and "sms" not in path:
        await expect(page.locator("html[data-ready]")).to_be_attached()


@pytest.mark.parametrize("screen", ["desk", "phone"])
async def test_every_page_begins_with_the_same_bar(chromium: Browser, sandbox_server: Server, screen: str) -> None:
    context = await chromium.new_context(locale="en-US", **(DESK if screen == "desk" else PHONE))
    page = await context.new_page()
    for path, title in PAGES.items():
        await open_page(page, sandbox_server, path)
        box = await page.locator(".page-bar").bounding_box()
        assert (box["x"], box["y"], box["height"]) == (0, 0, HEIGHT_PX), title
        assert box["width"] == page.viewport_size["width"], title
        links = page.locator("#pages a")
        assert await links.evaluate_all("(all) => all.map((link) => [link.pathname, link.textContent])") == [
            [*each] for each in PAGES.items()
        ]
        assert await page.locator("#pages [aria-current=page]").all_inner_texts() == [title]
        shown = page.locator("#pages [aria-current=page]" if screen == "desk" else ".page-menu")
        await expect(shown).to_be_visible()
        await expect(shown).to_have_text(title)
        assert await page.evaluate(_CLIPPED) == [], title
        await expect(page).to_have_title(re.compile(rf"^({title}|.+ · {title}) · Parley$"))
        if path != "/docs":  # Its viewer is not ours.
            await check_accessibility(page)
        for scheme in ("dark", "light"):
            await page.emulate_media(color_scheme=scheme)
            await keep_picture(page, f"bar-{title.lower().replace(' ', '-')}-{screen}-{scheme}")
    await context.close()


async def test_the_links_of_a_phone_are_behind_the_title_of_the_page(
    chromium: Browser, sandbox_server: Server
) -> None:
    context = await chromium.new_context(locale="en-US", **PHONE)
    page = await context.new_page()
    await open_page(page, sandbox_server, "/dev/mail")
    menu, links = page.get_by_role("button", name="Emails"), page.get_by_role("navigation", name="Parley")
    await expect(links).to_be_hidden()
    await menu.click()
    await expect(links).to_be_visible()
    await check_accessibility(page)
    await keep_picture(page, "bar-menu")
    await page.keyboard.press("Escape")
    await expect(links).to_be_hidden()
    await menu.press("Enter")
    await page.keyboard.press("Tab")
    await expect(links.get_by_role("link", name="Talk")).to_be_focused()
    await links.get_by_role("link", name="Accounts").click()
    await expect(page.get_by_role("button", name="Accounts")).to_be_visible()
    await context.close()


async def test_the_icon_of_every_page_is_the_logo(sandbox_server: Server) -> None:
    http, url = sandbox_server.http, sandbox_server.url
    async with http.get(f"{url}/favicon.ico") as response:
        assert response.content_type == "image/svg+xml"
        logo = await response.text()
    for path in PAGES:
        async with http.get(url + path, headers={"Accept": "text/html"}) as response:
            found = re.search(r'<link rel="icon" href="([^"]+)">', await response.text())
        assert found is not None, path
        if found[1].startswith("data:"):
            assert unquote(found[1]).partition(",")[2] == logo, path
        else:
            async with http.get(urljoin(url + path, found[1])) as response:
                assert await response.text() == logo, path
