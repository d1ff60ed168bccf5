"""Opening an email in the local inbox of a development server reports that it was opened."""

from pathlib import Path
from typing import Any

from playwright.async_api import Browser, expect

from tests.app.mail.hub import open_hub
from tests.waiting import until


async def test_an_email_that_is_opened_in_the_inbox_is_reported(chromium: Browser, databases: Any, tmp_path: Path):
    async with open_hub(databases, tmp_path) as hub:
        await hub.configure("events", "crm", stream="crm", events=["email_operation"])
        ada = await hub.person()
        assert await hub.send(ada, "welcome", custom_variables={"name": "Ada"}) == (200, {})
        await hub.received(ada.email)
        context = await chromium.new_context()
        page = await context.new_page()
        await page.goto(f"{hub.server.url}/dev/mail?to={ada.email}")
        await expect(page.get_by_role("heading", name="Welcome, Ada")).to_be_visible()
        article = page.get_by_role("article").filter(has_text="Welcome, Ada")
        await article.get_by_text("HTML", exact=True).click()
        await expect(article.frame_locator("iframe").get_by_text("Hello Ada")).to_be_visible()

        async def opened() -> bool:
            # A headless browser does not count as a reader.
            return await hub.rows("opens + machine_opens", ada.uid) == [1]

        await until(opened)
        async with hub.server.services.database.connection() as conn:
            assert await conn.fetchval("select data ->> 'email' from reported_events") == ada.email
        await context.close()
