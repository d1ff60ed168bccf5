"""The viewer of the API reference shows the document in the browser without warnings."""

from playwright.async_api import Browser, expect

from tests.browser.page_faults import PageFaults
from tests.running.servers import Server

_DRAWN_WITHIN_MS = 120_000
"""The reference is very long. Alone on a machine, it is drawn within 5 s."""


async def test_the_reference_is_shown_without_a_warning_and_links_to_the_document(
    chromium: Browser, server: Server, page_faults: PageFaults
) -> None:
    context = await chromium.new_context()
    page_faults.watch(context, server.url.removeprefix("http://"))
    page = await context.new_page()
    warnings = []
    page.on("console", lambda message: warnings.append(message.text) if message.type == "warning" else None)
    await page.goto(f"{server.url}/docs")
    await expect(page.get_by_role("heading", name="S2S forms")).to_be_visible(timeout=_DRAWN_WITHIN_MS)
    assert not warnings
    link = page.get_by_role("link", name="Download OpenAPI Document").first
    async with page.expect_response(f"{server.url}/openapi.json") as linked:
        await link.click()
    assert "x-events" in (await (await linked.value).json())["paths"]["/bp/ai/conversation"]["post"]
    await context.close()
