"""The pages of the sandbox's PayPal, on which a payer approves or cancels."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from streams.wire.ids import new_id
from streams.wire.money import Money
from tests.browser.accessibility import check_accessibility
from tests.browser.page_faults import PageFaults
from tests.browser.pictures import keep_picture
from tests.sampling import sampled
from tests.vendors.payments.paypal.calls import Merchant, merchant
from vendors.http.client import open_vendor_http
from vendors.sandbox.payments.paypal.plans import TRIAL
from vendors.sandbox.server import listening

SCREENS: dict[str, dict[str, Any]] = {
    "desk": {"viewport": {"width": 1280, "height": 800}},
    "phone": {"viewport": {"width": 360, "height": 740}, "is_mobile": True, "has_touch": True},
}


@dataclass(frozen=True)
class Payer:
    """A person with a browser, and the merchant whose payments are approved."""

    page: Page
    shop: Merchant

    @property
    def urls(self) -> dict[str, str]:
        returned = f"{self.shop.sandbox.url}/paypal/returned"
        return {"return_url": returned, "cancel_url": f"{returned}?cancelled"}


@pytest_asyncio.fixture(loop_scope="session")
async def payer(request: pytest.FixtureRequest, chromium: Browser, page_faults: PageFaults) -> AsyncIterator[Payer]:
    async with listening() as sandbox, open_vendor_http() as http, merchant(http, sandbox) as shop:
        context = await chromium.new_context(**SCREENS[request.param])
        page_faults.watch(context, urlsplit(sandbox.url).netloc)
        page = await context.new_page()
        yield Payer(page, shop)
        await context.close()


@pytest.mark.parametrize("payer", sampled(SCREENS, ["phone"]), indirect=True)
async def test_an_order_is_approved_with_a_fault(payer: Payer) -> None:
    page, paypal = payer.page, payer.shop.paypal
    order = await paypal.create_order(
        new_id(), amount=Money(199, "USD"), custom_id="u", description="100 coins", **payer.urls
    )
    await page.goto(order.approve_url)
    await expect(page.get_by_role("heading")).to_have_text("100 coins")
    await expect(page.get_by_text("1.99 USD", exact=True)).to_be_visible()
    await page.get_by_text("let something go wrong").click()
    await check_accessibility(page)
    await keep_picture(page, f"wallet-fault-{page.viewport_size['width']}")

    await page.get_by_role("button", name="Hold payment").click()

    await expect(page.get_by_role("heading")).to_have_text("The payment is approved.")
    await check_accessibility(page)
    captured = await paypal.capture_order(new_id(), order.id)
    assert [capture.status for capture in captured.captures] == ["PENDING"]


@pytest.mark.parametrize("payer", sampled(SCREENS, ["desk"]), indirect=True)
async def test_a_subscription_is_cancelled_and_then_approved(payer: Payer) -> None:
    page, paypal = payer.page, payer.shop.paypal
    made = await paypal.create_subscription(
        new_id(), plan_id=TRIAL, custom_id="u", brand_name="Parley", **payer.urls
    )
    await page.goto(made.approve_url)
    await expect(page.get_by_text("Pay 9.99 USD to Parley, every month, after a trial")).to_be_visible()
    await page.get_by_role("button", name="Cancel").click()
    await expect(page.get_by_role("heading")).to_have_text("The payment is cancelled.")
    assert (await paypal.subscription(made.id)).status == "APPROVAL_PENDING"

    await page.goto(made.approve_url)
    await page.get_by_role("button", name="Approve", exact=True).click()

    await expect(page.get_by_role("heading")).to_have_text("The payment is approved.")
    assert (await paypal.subscription(made.id)).status == "ACTIVE"
    await page.goto(made.approve_url)
    await expect(page.get_by_role("heading")).to_have_text("Nothing to approve")
