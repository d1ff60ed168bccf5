"""A user pays on the page of the sandbox's wallet platform, and then has what was paid for."""

import re
from typing import Any

from playwright.async_api import Browser, Page, expect

from tests.app.callers import ask
from tests.browser.accessibility import check_accessibility
from tests.browser.pictures import keep_picture
from tests.running.servers import Server
from tests.waiting import until

CLIENT, WEBHOOK = "sandbox-app", "8PT597110X687430L"
"""Those of the seed config `walletpay/Default`."""


async def post(server: Server, session: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
    headers = {"X-Service-Session-Token": session}
    status, answer = await ask(server, "POST", f"/bp/asset/{path}", json=body, headers=headers)
    assert status == 200, answer
    found: dict[str, Any] = answer
    return found


async def owned(server: Server, session: str) -> dict[str, Any]:
    _, answer = await ask(server, "GET", "/bp/asset", headers={"X-Service-Session-Token": session})
    return {asset["name"]: asset for asset in answer["assets"]}


async def decide(page: Page, link: str, button: str, *, picture: str) -> None:
    await page.goto(link)
    await check_accessibility(page)
    await keep_picture(page, picture)
    await page.get_by_role("button", name=button, exact=True).click()


async def test_an_order_and_a_subscription_are_approved_in_the_browser(
    chromium: Browser, sandbox_server: Server
) -> None:
    server = sandbox_server
    _, session = await server.login()
    hook = {"client_id": CLIENT, "id": WEBHOOK, "url": f"{server.url}/bp/webhook/walletpay/default/Default"}
    async with server.http.post(
        f"{server.services.settings.sandbox_url}/paypal/_control/webhook", json=hook
    ) as made:
        assert made.status == 200
    page = await chromium.new_page()
    order = (await post(server, session, "walletpay/create", {"product_id": "coins_100"}))["walletpay_order"]
    await decide(page, order["approve_link_href"], "Cancel", picture="wallet-order")
    await expect(page).to_have_title(re.compile("cancelled"))
    await decide(page, order["approve_link_href"], "Approve", picture="wallet-order-again")
    await expect(page).to_have_title(re.compile("approved"))
    captured = await post(server, session, "walletpay/capture", {"order_id": order["id"]})
    assert captured["walletpay_order"]["status"] == "COMPLETED"
    assert (await owned(server, session))["coins"]["quantity"] == 100
    sub = (await post(server, session, "walletpay_sub", {"product_id": "pro_month"}))["walletpay_sub"]
    await decide(page, sub["approve_link_href"], "Approve", picture="wallet-subscription")

    async def has_subscription() -> bool:
        return "pro" in await owned(server, session)

    await until(has_subscription)
    assert (await owned(server, session))["pro"]["bp_product_id"] == "pro_month"
    await page.close()
