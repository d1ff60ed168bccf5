"""Fixtures of this folder."""

from collections.abc import AsyncIterator

import pytest_asyncio
from playwright.async_api import Browser, Page

from tests.browser.conftest import Put
from tests.browser.console.console_page import overview
from tests.browser.page_faults import PageFaults
from tests.running.servers import Server


@pytest_asyncio.fixture(loop_scope="session")
async def page(put: Put, chromium: Browser, server: Server, page_faults: PageFaults) -> AsyncIterator[Page]:
    """The console, which shows the overview. It is closed before what `put` has written is deleted."""
    async with overview(chromium, server, page_faults) as opened:
        yield opened
