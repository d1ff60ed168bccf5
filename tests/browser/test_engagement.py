"""A developer watches a leaderboard fill, an image being drawn, and an email being opened."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from tests.app.callers import working
from tests.browser.accessibility import check_accessibility
from tests.browser.page_faults import PageFaults
from tests.browser.pictures import keep_picture
from tests.running.servers import Databases, Server, new_server
from tests.sampling import sampled
from vendors.sandbox.server import listening

SCREENS: dict[str, dict[str, Any]] = {
    "desk": {"viewport": {"width": 1280, "height": 800}},
    "phone": {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True},
}


@pytest_asyncio.fixture(loop_scope="session")
async def engagement_server(databases: Databases, local_vendors: str, tmp_path: Path) -> AsyncIterator[Server]:
    """A server with a worker, an inbox and the local engines, on whose board nobody has a score."""
    async with (
        listening() as sandbox,
        new_server(
            databases, tmp_path, inbox_url=sandbox.inbox_url, sandbox_url=sandbox.url, local_url=local_vendors
        ) as server,
        working(server.services),
    ):
        yield server


async def plays(page: Page) -> None:
    board = page.get_by_role("region", name="Leaderboard")
    await expect(board.get_by_text("Nobody has a score this week.")).to_be_visible()
    await board.get_by_role("button", name="Score 50 points").click()
    await expect(board.get_by_role("listitem")).to_have_text(["1You50"])
    await board.get_by_role("button", name="Start a game").click()
    await expect(board.get_by_role("listitem").nth(2)).to_be_visible()
    await board.get_by_role("button", name="Stop the game").click()
    await board.get_by_role("button", name="Score 50 points").click()
    await expect(board.get_by_role("listitem").filter(has_text="You")).to_contain_text("100")
    ranks = [int((await row.inner_text()).split()[0]) for row in await board.get_by_role("listitem").all()]
    assert ranks == sorted(ranks)


async def draws(page: Page) -> None:
    panel = page.get_by_role("region", name="Image")
    await panel.get_by_label("Prompt").fill("a lighthouse")
    await panel.get_by_role("button", name="Draw").click()
    await expect(panel.get_by_role("progressbar", name="Progress of the image")).to_be_visible()
    await panel.get_by_role("button", name="Enlarge picture 2").click()
    await expect(panel.get_by_role("button", name="More left")).to_be_visible()
    width = await panel.get_by_role("img", name="Picture of a lighthouse").evaluate("image => image.naturalWidth")
    assert width > 0


async def reads(page: Page) -> None:
    panel = page.get_by_role("region", name="Email")
    await panel.get_by_role("button", name="Send").click()
    await expect(panel.get_by_role("heading", name="Welcome, Ada")).to_be_visible()
    await expect(panel.get_by_role("listitem").first).to_have_text("Sent")
    await panel.get_by_role("button", name="Open the email").click()
    await expect(panel.frame_locator("iframe").get_by_text("Hello Ada")).to_be_visible()
    # A headless browser does not count as a reader.
    await expect(panel.get_by_text("Opened once by programs")).to_be_visible()


@pytest.mark.parametrize("screen", sampled(SCREENS, ["desk"]))
async def test_a_board_fills_an_image_is_drawn_and_an_email_is_opened(
    chromium: Browser, engagement_server: Server, page_faults: PageFaults, screen: str
) -> None:
    context = await chromium.new_context(**SCREENS[screen])
    page_faults.watch(context, urlsplit(engagement_server.url).netloc)
    page = await context.new_page()
    await page.goto(f"{engagement_server.url}/dev/engagement")
    await page.wait_for_selector("html[data-ready]")
    await check_accessibility(page)
    await keep_picture(page, f"engagement-begin-{screen}")
    await plays(page)
    await draws(page)
    await reads(page)
    await check_accessibility(page)
    await keep_picture(page, f"engagement-{screen}")
    await page.set_viewport_size(SCREENS["phone"]["viewport"])
    assert await page.evaluate("() => document.documentElement.scrollWidth - innerWidth") <= 0
    await check_accessibility(page)
    await keep_picture(page, "engagement-narrow")
    await context.close()


async def test_only_the_emails_of_an_existing_app_are_listed(sandbox_server: Server) -> None:
    url = f"{sandbox_server.url}/dev/mail/sent"
    async with sandbox_server.http.get(url, params={"app": "gone", "uid": "u"}) as answer:
        assert (answer.status, (await answer.json())["error"]["error_type"]) == (400, "app_not_found")
