"""A developer buys on the payments page: by wallet, a subscription, and with a card that is declined at first."""

import asyncio
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.async_api import Browser, Page, expect

from streams.wire.codec import loads
from tests.browser.accessibility import check_accessibility
from tests.browser.page_faults import PageFaults
from tests.browser.pictures import keep_picture
from tests.running.servers import Server
from tests.sampling import sampled

SCREENS: dict[str, dict[str, Any]] = {
    "desk": {"viewport": {"width": 1280, "height": 800}},
    "phone": {"viewport": {"width": 360, "height": 740}, "is_mobile": True, "has_touch": True},
}


async def bought(page: Page, outcome: str, assets: list[str]) -> None:
    """Wait until the page says what came of a purchase, and shows these rows: an asset, before and after."""
    await expect(page.get_by_role("status")).to_have_text(outcome)
    rows = page.get_by_role("region", name="Assets").locator("tbody tr")
    await expect(rows).to_have_text(assets)


async def output_of(command: str) -> Any:
    """Run a command that the page shows, as pasted into a shell. Return the JSON that it prints."""
    process = await asyncio.create_subprocess_exec(
        "sh", "-c", command, env={"PATH": "/usr/bin:/bin"}, stdout=asyncio.subprocess.PIPE
    )
    output, _ = await process.communicate()
    return loads(output)


@pytest.mark.parametrize("screen", sampled(SCREENS, ["desk"]))
async def test_products_are_bought_by_wallet_and_card(
    chromium: Browser, sandbox_server: Server, page_faults: PageFaults, screen: str
) -> None:
    context = await chromium.new_context(**SCREENS[screen])
    sandbox_url = sandbox_server.services.settings.sandbox_url
    assert sandbox_url is not None
    page_faults.hosts.add(urlsplit(sandbox_url).netloc)
    page_faults.watch(context, urlsplit(sandbox_server.url).netloc)
    page = await context.new_page()

    await page.goto(f"{sandbox_server.url}/dev/payments")
    await expect(page.get_by_text("The user owns nothing yet.")).to_be_visible()
    await check_accessibility(page)
    await page.get_by_role("link", name="Card payments").click()
    await expect(page.get_by_role("heading", name="Open payments")).to_be_visible()
    await check_accessibility(page)
    await page.get_by_role("link", name="Back to the shop").click()
    await page.get_by_role("button", name="Pay by wallet").click()
    await expect(page.get_by_role("heading", name="100 coins")).to_be_visible()
    await expect(page.get_by_text("Pay 1.99 USD to Parley, once")).to_be_visible()
    await page.get_by_role("button", name="Approve", exact=True).click()
    await bought(page, "Paid by wallet", ["coinsnone100"])

    await page.get_by_role("radio", name="Pro, monthly").check()
    await page.get_by_role("button", name="Pay by wallet").click()
    await page.get_by_role("button", name="Approve", exact=True).click()
    await expect(page.get_by_role("status")).to_have_text("Subscribed by wallet")
    await expect(page.get_by_role("row", name="pro none until 20")).to_be_visible()

    await page.get_by_role("radio", name="100 coins").check()
    await page.get_by_role("button", name="Pay by card").click()
    await page.get_by_text("let something go wrong").click()
    await check_accessibility(page)
    await page.get_by_role("button", name="Decline payment").click()
    await expect(page.get_by_role("alert")).to_have_text("Your card was declined. generic_decline")
    await check_accessibility(page)
    await keep_picture(page, f"card-declined-{screen}")
    await page.get_by_role("button", name="Pay", exact=True).click()
    await expect(page.get_by_role("status")).to_have_text("Paid by card")
    await expect(page.get_by_role("row", name="coins 100 200")).to_be_visible()

    newest = page.locator("details.exchange[open]").first
    await expect(newest.locator(".curl")).to_contain_text("/asset/cardpay_payment_intent/pi_")
    await expect(newest.get_by_label("Response")).to_contain_text('"status": "succeeded"')
    answer = await output_of(await newest.locator(".curl code").inner_text())
    assert answer["cardpay_payment_intent"]["status"] == "succeeded"
    await check_accessibility(page)
    await keep_picture(page, f"payments-{screen}")
    await page.set_viewport_size(SCREENS["phone"]["viewport"])
    assert await page.evaluate("() => document.documentElement.scrollWidth - innerWidth") <= 0
    await keep_picture(page, "payments-narrow")
    await context.close()


async def test_a_cancelled_order_is_not_paid(
    chromium: Browser, sandbox_server: Server, page_faults: PageFaults
) -> None:
    context = await chromium.new_context(**SCREENS["phone"])
    page_faults.watch(context, urlsplit(sandbox_server.url).netloc)
    page_faults.hosts.add(urlsplit(str(sandbox_server.services.settings.sandbox_url)).netloc)
    page = await context.new_page()
    await page.goto(f"{sandbox_server.url}/dev/payments")
    await page.get_by_role("button", name="Pay by wallet").click()
    await page.get_by_role("button", name="Cancel").click()
    await expect(page.get_by_role("status")).to_have_text("Not paid: the order is CREATED")
    await expect(page.get_by_text("The user owns nothing yet.")).to_be_visible()
    await context.close()
