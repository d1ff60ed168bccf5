"""The console in a browser, and the checks of each of its pages."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from playwright.async_api import Browser, Page

from tests.browser.accessibility import check_accessibility
from tests.browser.page_faults import PageFaults
from tests.browser.pictures import keep_picture
from tests.servers import Server

_OVERFLOW = "() => document.documentElement.scrollWidth - innerWidth"
_SIZES = [(1_280, 800), (390, 844), (360, 740)]


@asynccontextmanager
async def open_console(chromium: Browser, server: Server, faults: PageFaults) -> AsyncIterator[Page]:
    """Yield a page in a context of its own, whose faults are recorded."""
    context = await chromium.new_context(viewport={"width": 1_280, "height": 800}, locale="en-US")
    faults.watch(context, server.url.partition("//")[2])
    yield await context.new_page()
    await context.close()


async def check(page: Page, name: str) -> None:
    """Check and store what the page shows now at each size in both themes."""
    for width, height in _SIZES:
        await page.set_viewport_size({"width": width, "height": height})
        await check_accessibility(page)
        assert await page.evaluate(_OVERFLOW) <= 0, (name, width)
        for theme in ("light", "dark"):
            await page.emulate_media(color_scheme=theme)
            await keep_picture(page, f"console-{name}-{width}-{theme}")
    await page.set_viewport_size({"width": 1_280, "height": 800})
