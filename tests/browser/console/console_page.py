"""The console in a browser, and the checks of each of its pages."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from playwright.async_api import Browser, Page, ViewportSize, expect

from app.dev.console import console_link
from storage.operators import operators
from storage.operators.audit import COMMAND
from storage.operators.console_sessions import begin
from storage.operators.operators import Role
from streams.wire.ids import new_id
from tests.browser.accessibility import check_accessibility
from tests.browser.page_faults import PageFaults
from tests.browser.pictures import keep_picture
from tests.browser.used_operations import USED
from tests.running.servers import Server

SCRIPT = "<img src=x onerror=alert(1)>"
"""A text by a user or a vendor, which the console shows as text."""
_OVERFLOW = "() => document.documentElement.scrollWidth - innerWidth"
_NARROWEST = ViewportSize(width=360, height=740)
PHONE = ViewportSize(width=390, height=844)
DESKTOP = ViewportSize(width=1_280, height=800)
"""Sizes of a screen. The page has one layout for the first two and another for the last one."""
LAYOUTS = (DESKTOP, PHONE)
"""A change is made at both: once for each, within one test."""


@asynccontextmanager
async def open_console(chromium: Browser, server: Server, faults: PageFaults) -> AsyncIterator[Page]:
    """Yield a page in a context of its own, whose faults are recorded."""
    context = await chromium.new_context(viewport=DESKTOP, locale="en-US")
    faults.watch(context, server.url.partition("//")[2])
    USED.watch(context)
    yield await context.new_page()
    await context.close()


@asynccontextmanager
async def overview(chromium: Browser, server: Server, faults: PageFaults) -> AsyncIterator[Page]:
    """Yield the overview. The link that developers get has opened it."""
    async with open_console(chromium, server, faults) as page:
        await page.goto(f"{server.url}{console_link(server.services.keyring)}")
        await expect(page.get_by_role("heading", name="Overview")).to_be_visible()
        yield page


@asynccontextmanager
async def viewing(
    chromium: Browser, server: Server, faults: PageFaults, *, role: Role = Role.VIEWER
) -> AsyncIterator[Page]:
    """Yield a page for an operator who is signed in with a role."""
    async with server.services.database.transaction() as conn:
        operator, _ = await operators.add(conn, new_id(), role=role, expires_at=None, origin=COMMAND)
        token = await begin(conn, operator.operator_id)
    async with open_console(chromium, server, faults) as page:
        await page.context.add_cookies([{"name": "parley_console", "value": token, "url": server.url}])
        yield page


async def execute(server: Server, statement: str, *values: Any) -> None:
    async with server.services.database.connection() as conn:
        await conn.execute(statement, *values)


async def check(page: Page, name: str) -> None:
    """Check what the page shows now at each size, and keep a picture of each layout."""
    await _fits(page, _NARROWEST)
    for size in (PHONE, DESKTOP):
        await _fits(page, size)
        await check_accessibility(page, all_violations=True)
        await keep_picture(page, f"console-{name}-{size['width']}")


async def _fits(page: Page, size: ViewportSize) -> None:
    """Resize the page. Fail if it is wider than the screen then."""
    await page.set_viewport_size(size)
    assert await page.evaluate(_OVERFLOW) <= 0, (page.url, size)
