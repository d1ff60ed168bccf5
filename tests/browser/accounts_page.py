"""The accounts page as tests use it, and a server on which all its flows work."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.async_api import Browser, Locator, Page, expect

from app.work.worker import run_jobs
from storage.operators.audit import COMMAND
from streams.tasks import background
from streams.wire.codec import loads
from tests.browser.page_faults import PageFaults
from tests.running.servers import Databases, Server, new_server
from vendors.sandbox.server import listening

_RATES = ("signup", "email_minute", "email_day", "email_address", "login_address", "login_network", "detect")
REFUSED = "the server responded with a status of 400"
"""What a browser logs about a refused request."""


@asynccontextmanager
async def accounts_server(databases: Databases, data_dir: Path) -> AsyncIterator[Server]:
    """A server with a worker and the sandbox, as of `make run`, with higher limits."""
    async with (
        listening() as sandbox,
        new_server(databases, data_dir, inbox_url=sandbox.inbox_url, sandbox_url=sandbox.url) as server,
        background(run_jobs(server.services, scheduled=False, poll_s=0.1)),
    ):
        raised_limits = {"rates": {name: {"count": 10_000, "per_s": 1} for name in _RATES}}
        await server.services.configs.put(
            "default", "limits", "default", raised_limits, author="test", origin=COMMAND
        )
        yield server


@dataclass
class AccountsPage:
    page: Page
    server: Server
    faults: PageFaults

    async def open(self, flow: str) -> None:
        """Open a flow as a new visitor."""
        if self.page.url.startswith(self.server.url):
            await self.page.evaluate("() => sessionStorage.clear()")
        await self.page.goto("about:blank")  # If only the flow changed, the page would not be loaded again.
        await self.page.goto(f"{self.server.url}/dev/accounts#{flow}")
        await self.ready()

    async def open_third_party(self, platform: str) -> None:
        """Open a platform with somebody whose first login or bind there no test is about."""
        await self.open(platform)
        await self.pick("Amara Okafor")

    async def ready(self) -> None:
        await expect(self.page.locator("html[data-ready]")).to_be_attached()

    async def go(self, flow: str) -> None:
        """Choose a flow in the menu."""
        await self.page.get_by_role("navigation").locator(f'a[href="#{flow}"]').click()
        await expect(self.flow.locator("header code")).to_have_text(flow)

    @property
    def flow(self) -> Locator:
        return self.page.locator("section.flow")

    @property
    def user(self) -> Locator:
        return self.page.get_by_role("region", name="Current user", exact=True)

    @property
    def ways(self) -> Locator:
        return self.user.get_by_role("list", name="Ways to log in").get_by_role("listitem")

    @property
    def result(self) -> Locator:
        return self.page.get_by_role("status")

    @property
    def newest(self) -> Locator:
        """The request that is shown whole: the newest one that was made by pressing a button."""
        return self.page.locator("details.exchange[open]").first

    @property
    def exchanges(self) -> Locator:
        """All requests, the newest first."""
        return self.page.locator("details.exchange")

    def button(self, name: str) -> Locator:
        return self.flow.get_by_role("button", name=name, exact=True)

    def field(self, label: str) -> Locator:
        return self.flow.get_by_label(label, exact=True)

    async def press(self, name: str, outcome: str) -> None:
        """Press a button and wait until the page says what came of it."""
        await self.button(name).click()
        await expect(self.result).to_contain_text(outcome)

    async def pick(self, person: str) -> None:
        await self.flow.get_by_role("radio", name=person).check()

    async def fail_by(self, fault: str) -> None:
        await self.flow.get_by_role("combobox", name="What happens").select_option(fault)

    async def use_code(self, to: str, *, title: str = "Emails") -> None:
        """Wait for an email or a message with a code, and press the button that fills it in."""
        inbox = self.flow.get_by_role("region", name=f"{title} to {to}")
        await inbox.get_by_role("button", name="Use").first.click()

    @asynccontextmanager
    async def mail_page(self, link: str) -> AsyncIterator[Page]:
        """Open a link of the newest mail in a new tab during the block."""
        async with self.page.expect_popup() as opened:
            await self.flow.get_by_role("link", name=link).first.click()
        page = await opened.value
        try:
            yield page
        finally:
            await page.close()

    async def command(self) -> str:
        """Return the shown curl command of the newest request."""
        return await self.newest.locator(".curl code").inner_text()

    async def run_command(self) -> Any:
        """Run the shown curl command. Return the JSON of its output, or `None` if there is none."""
        process = await asyncio.create_subprocess_exec(
            *("sh", "-c", await self.command()),
            env={"PATH": "/usr/bin:/bin"},
            stdout=asyncio.subprocess.PIPE,
        )
        output, _ = await process.communicate()
        assert process.returncode == 0
        return loads(output) if output else None


@asynccontextmanager
async def accounts_page(browser: Browser, server: Server, **options: Any) -> AsyncIterator[AccountsPage]:
    context = await browser.new_context(
        **{"viewport": {"width": 1280, "height": 800}, "locale": "en-US", **options}
    )
    faults = PageFaults()
    sandbox_url = server.services.settings.sandbox_url
    assert sandbox_url is not None, "its pictures are shown"
    faults.hosts.add(urlsplit(sandbox_url).netloc)
    faults.watch(context, urlsplit(server.url).netloc)
    try:
        yield AccountsPage(await context.new_page(), server, faults)
    finally:
        await context.close()
