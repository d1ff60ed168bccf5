"""The console: no list is wider than the page, whatever its rows contain, so that its buttons are always seen."""

from collections.abc import AsyncIterator

import pytest_asyncio
from playwright.async_api import Page, expect

from tests.browser.conftest import Put
from tests.browser.console.full_lists import APP, empty, fill
from tests.browser.pictures import keep_picture
from tests.running.servers import Server

LISTS = (
    "configs", "users", "streams/ended", "money/orders", "money/subscriptions", "money/refunds", "money/disputes",
    "money/withdrawals", "money/mismatches", "money/webhooks", "engagement/boards", "engagement/mails",
    "engagement/suppressions", "engagement/predictions", "engagement/images", "engagement/sinks", "jobs/held",
    "jobs/queues", "jobs/schedules", "operations/logins", "operations/audit", "operations/operators",
)  # fmt: skip
WIDE, PHONE = {"width": 1_280, "height": 800}, {"width": 390, "height": 844}
_FAULTS = """() => [...document.querySelectorAll('.table')].flatMap((table) => {
    const words = [], walker = document.createTreeWalker(table, NodeFilter.SHOW_TEXT);
    for (let node; (node = walker.nextNode());) {
        if (node.parentElement.closest('details:not([open]) > :not(summary)')) continue;
        for (const { 0: word, index } of node.data.matchAll(/(?<![^\\s(])[A-Za-z]{2,20}(?![^\\s,.:;)])/g)) {
            const range = document.createRange();
            range.setStart(node, index);
            range.setEnd(node, index + word.length);
            const lines = new Set([...range.getClientRects()].map(({ top }) => Math.round(top)));
            if (lines.size > 1) words.push(`broken: ${word}`);
        }
    }
    const badges = [...table.querySelectorAll('.badge')].filter((badge) => badge.checkVisibility());
    for (const [at, badge] of badges.entries()) {
        const box = badge.getBoundingClientRect(), next = badges[at + 1]?.getBoundingClientRect();
        const row = badge.closest('tr').getBoundingClientRect();
        const isCut = badge.scrollWidth > badge.offsetWidth || box.right > row.right;
        const meets = next?.top < box.bottom && next.bottom > box.top;
        const isCovered = meets && next.left < box.right && next.right > box.left;
        if (isCut || isCovered) words.push(`badge: ${badge.textContent}`);
    }
    const hidden = table.scrollWidth - table.clientWidth;
    return hidden > 0 ? [`${table.ariaLabel}: ${hidden} px hidden`, ...words] : words;
})"""
"""Returns the tables that scroll sideways, the words that a line break has divided, and the badges that are cut."""


@pytest_asyncio.fixture(loop_scope="session")
async def filled(put: Put, server: Server) -> AsyncIterator[str]:
    """Fill all lists with rows of `APP`. Returns the user that they are of."""
    await put("apps", "default", {"title": "Fitness coach"}, app_id=APP)
    await put("events", "customer_relations", {"stream": "events", "events": ["asset"]}, app_id=APP)
    await put("leaderboards", "most_minutes_of_the_week", {"reset": {"every": "week"}}, app_id=APP)
    async with server.services.database.connection() as conn:
        uid = await fill(conn)
        yield uid
        await empty(conn)


async def test_each_list_fits_the_page(page: Page, server: Server, filled: str) -> None:
    del filled
    found = {}
    for area in LISTS:
        await page.set_viewport_size(WIDE)
        await page.goto(f"{server.url}/console#/{area}?app={APP}")
        await expect(page.locator("tbody tr").first).to_be_visible()
        for size in (PHONE, WIDE):
            await page.set_viewport_size(size)
            if faults := await page.evaluate(_FAULTS):
                found[area, size["width"]] = faults
            await keep_picture(page, f"console-full-{area.replace('/', '-')}-{size['width']}")
    assert found == {}
