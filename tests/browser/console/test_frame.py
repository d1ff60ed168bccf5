"""The console: what surrounds its pages, such as the end of a session, wrong addresses and errors."""

from urllib.parse import urlsplit

from playwright.async_api import Page, expect

from storage.tokens import digest
from tests.browser.console.console_page import check, execute
from tests.browser.page_faults import PageFaults
from tests.running.servers import Server

EVENTS = "/admin/api/overview/events"
LOOKS_AGAIN = "document.dispatchEvent(new Event('visibilitychange'))"
"""What the browser does when an operator comes back to the page."""


async def end_session(page: Page, server: Server) -> None:
    [cookie] = [each for each in await page.context.cookies() if each["name"] == "parley_console"]
    ended = "update operator_sessions set used_at = now() - interval '61 minutes' where digest = $1"
    await execute(server, ended, digest(cookie["value"]))


async def test_an_overview_that_was_left_open_asks_once_more_and_then_to_sign_in(
    page: Page, server: Server, page_faults: PageFaults
) -> None:
    page_faults.expected = [f"401.*{EVENTS}"]
    asked: list[int] = []
    await expect(page.get_by_text("Live", exact=True)).to_be_visible()
    page.on("response", lambda response: urlsplit(response.url).path == EVENTS and asked.append(response.status))
    await end_session(page, server)
    await page.evaluate(LOOKS_AGAIN)
    await expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    await expect(page.get_by_role("alert")).to_have_text("Your session has ended. Sign in again.")
    await check(page, "session-ended")
    assert asked == [401]
