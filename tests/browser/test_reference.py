"""The viewer of the API reference shows the document in the browser without warnings."""

import json  # noqa: TID251 - independent of the server's own code

from playwright.async_api import Browser, expect

from tests.browser.page_faults import PageFaults
from tests.servers import Server


async def test_the_reference_is_shown_without_a_warning_and_downloads_with_the_schemas_of_events(
    chromium: Browser, server: Server, page_faults: PageFaults
) -> None:
    context = await chromium.new_context()
    page_faults.watch(context, server.url.removeprefix("http://"))
    page = await context.new_page()
    warnings = []
    page.on("console", lambda message: warnings.append(message.text) if message.type == "warning" else None)
    async with page.expect_console_message(lambda message: message.text.startswith("addDocument")):
        await page.goto(f"{server.url}/docs")
    await expect(page.get_by_role("heading", name="S2S forms")).to_be_visible()
    assert not warnings
    async with page.expect_download() as download:
        await page.get_by_role("button", name="Download OpenAPI Document").first.click()
    saved = json.loads((await (await download.value).path()).read_text())
    assert "x-events" in saved["paths"]["/bp/ai/conversation"]["post"]
    await context.close()
