"""The console: drafts of a sign-in platform and of a product are tried before they are published."""

from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import pytest_asyncio
from playwright.async_api import Page, ViewportSize, expect

from tests.browser.console.console_page import check
from tests.running.servers import Server
from vendors.sandbox.server import Running, listening

PHONE = ViewportSize(width=390, height=844)
PRO = {"type": "subscription", "asset": "pro", "price": {"amount": 999, "currency": "USD"}}


@pytest_asyncio.fixture(loop_scope="session")
async def sandbox() -> AsyncIterator[Running]:
    async with listening() as running:
        yield running


async def open_trial(page: Page, server: Server, app_id: str, kind: str, name: str) -> None:
    await page.goto(f"{server.url}/console#/configs/{app_id}/{kind}/{name}")
    await page.get_by_role("button", name="Try", exact=True).click()


async def issued(server: Server, sandbox: Running, provider: str, **issue: Any) -> dict[str, str]:
    """Let a person sign in at a provider of the sandbox. Return the fields of the proof."""
    body = {"subject": "somebody", **issue}
    async with server.http.post(f"{sandbox.url}/{provider}/_issue", json=body) as response:
        fields: dict[str, str] = await response.json()
        return fields


async def test_a_proof_is_verified_with_a_draft_of_its_platform(
    page: Page, server: Server, put: Any, sandbox: Running
) -> None:
    app_id = f"shop-{uuid4().hex[:8]}"
    await put("apps", "default", {}, app_id=app_id)
    config = {"base_url": f"{sandbox.url}/google", "audiences": ["sandbox-app"]}
    await put("sign_in", "search_vendor_id", config, app_id=app_id)
    await open_trial(page, server, app_id, "sign_in", "search_vendor_id")
    await expect(page.get_by_label("nonce optional")).to_be_visible()
    token = page.get_by_label("id_token required")
    await check(page, "sign-in-trial")

    await token.fill((await issued(server, sandbox, "google", app="app-of-others"))["id_token"])
    await page.get_by_role("button", name="Verify once").click()
    await expect(page.get_by_role("alert")).to_contain_text("The proof is refused")
    await expect(page.get_by_role("table", name="What was checked")).to_contain_text("app-of-others")
    await check(page, "sign-in-trial-refused")

    await page.set_viewport_size(PHONE)
    await page.reload()
    await page.get_by_role("button", name="Try", exact=True).click()
    await token.fill((await issued(server, sandbox, "google"))["id_token"])
    await page.get_by_role("button", name="Verify once").click()
    await expect(page.get_by_text("The platform (google) has confirmed the identity")).to_be_visible()
    facts = page.locator(".facts")
    await expect(facts).to_contain_text("somebody")
    await expect(facts).to_contain_text("mei@example.test")
    await check(page, "sign-in-trial-confirmed")


async def test_the_price_of_a_draft_is_asked_of_the_platforms(
    page: Page, server: Server, put: Any, sandbox: Running
) -> None:
    app_id = f"shop-{uuid4().hex[:8]}"
    await put("apps", "default", {}, app_id=app_id)
    await put("cardpay", "Default", {"base_url": f"{sandbox.url}/stripe", "secret_key": "sandbox"}, app_id=app_id)
    wallet = {
        "base_url": f"{sandbox.url}/paypal", "client_id": "sandbox-app", "client_secret": "sandbox",
        "return_url": "https://app.test/paid", "cancel_url": "https://app.test/cancelled",
    }  # fmt: skip
    await put("walletpay", "Default", wallet, app_id=app_id)
    plan = {"plan_id": "P-7GL4271244454362WXNWU5TR"}
    pro = {**PRO, "period": "P1M", "cardpay": {"price_id": "price_pro_month"}, "walletpay": plan}
    await put("products", "pro", pro, app_id=app_id)
    coins = {"type": "consumable", "asset": "coins", "quantity": 100, "walletpay": {}}
    countries = {"JP": {"amount": 300, "currency": "JPY"}, "DE": {"amount": 10, "currency": "EUR"}}
    price = {"amount": 199, "currency": "USD", "countries": countries}
    await put("products", "coins", {**coins, "price": price}, app_id=app_id)

    await open_trial(page, server, app_id, "products", "pro")
    await page.get_by_role("button", name="Ask the platforms").click()
    rows = page.get_by_role("table", name="What a payer would pay").locator("tbody tr")
    await expect(rows.nth(0)).to_contain_text("$9.99 every month")
    await expect(rows.nth(0)).to_contain_text("Agrees")
    await expect(rows.nth(1)).to_contain_text("The plan has a trial of 1 week, but the draft has none.")
    await expect(rows.nth(1)).to_contain_text("after a free trial of 1 week")
    await check(page, "price-trial")

    await page.set_viewport_size(PHONE)
    await open_trial(page, server, app_id, "products", "coins")
    await page.get_by_role("button", name="Ask the platforms").click()
    await expect(rows).to_have_count(6)
    await expect(rows.nth(0)).to_contain_text("The payment was cancelled at once.")
    await expect(rows.nth(1)).to_contain_text("amount is refused by the card platform")
    await expect(rows.nth(3)).to_contain_text("Nobody will approve this order.")
    await check(page, "price-trial-made")
