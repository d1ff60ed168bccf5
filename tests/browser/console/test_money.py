"""The console: an operator refunds payments, and sees refunds, disputes and sales."""

from collections.abc import AsyncIterator

import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from streams.wire.codec import dumps
from tests.app.payments.wallet.wallets import Wallet, wallet_at
from tests.browser.console.console_page import PHONE, check, execute, viewing
from tests.browser.page_faults import PageFaults
from tests.running.servers import Server
from vendors.sandbox.server import listening


@pytest_asyncio.fixture(loop_scope="session")
async def wallet(server: Server) -> AsyncIterator[Wallet]:
    async with listening() as sandbox, wallet_at(server, sandbox) as opened:
        yield opened


async def bought(wallet: Wallet) -> str:
    order = await wallet.order()
    await wallet.approve(order["approve_link_href"])
    assert (await wallet.capture(order["id"]))[0] == 200
    return str(order["id"])


async def test_an_order_is_refunded_in_parts(page: Page, server: Server, wallet: Wallet) -> None:
    order = await bought(wallet)
    await page.goto(f"{server.url}/console#/users/default/{wallet.uid}/orders/{order}")
    await page.get_by_role("button", name="Refund").click()
    dialog = page.get_by_role("dialog")
    amount = dialog.get_by_label("Amount in USD")
    await expect(amount).to_have_value("1.99")
    await expect(dialog.get_by_text("What the payment has granted is taken back")).to_be_visible()
    await amount.fill("2")
    await expect(dialog.get_by_text("An amount of at most $1.99.")).to_be_visible()
    await amount.fill("1,5")
    await expect(dialog.get_by_text("keeps what it has granted")).to_be_visible()
    confirm = dialog.get_by_role("button", name="Refund $1.50")
    await expect(confirm).to_be_disabled()
    await dialog.get_by_label("Reason").fill("Bought twice")
    await check(page, "refund")
    await confirm.click()
    await expect(page.get_by_text("$1.50 was refunded.")).to_be_visible()
    assert (await wallet.assets())["coins"]["quantity"] == 100
    await page.set_viewport_size(PHONE)
    await page.get_by_role("button", name="Refund").click()
    await expect(dialog.get_by_text("of which $0.49 is left")).to_be_visible()
    await dialog.get_by_label("Reason").fill("The rest")
    await dialog.get_by_role("button", name="Refund $0.49").click()
    await expect(page.get_by_text("It was granted, and the money was given back.")).to_be_visible()
    assert (await wallet.assets())["coins"]["quantity"] == 0
    await page.get_by_role("button", name="Refund").click()
    await expect(dialog.get_by_text("Nothing of the $1.99 that was paid is left to refund.")).to_be_visible()


async def test_payments_are_refunded_and_their_refunds_disputes_and_sums_are_seen(
    page: Page, server: Server, wallet: Wallet
) -> None:
    await bought(wallet)
    await page.get_by_role("link", name="Money", exact=True).click()
    row = page.get_by_role("row").filter(has_text=wallet.uid[:8]).first
    await row.get_by_role("button", name="Refund").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Reason").fill("Asked for it")
    await dialog.get_by_role("button", name="Refund $1.99").click()
    await expect(page.get_by_text("$1.99 was refunded.")).to_be_visible()
    await page.get_by_role("link", name="Refunds", exact=True).click()
    refunds = page.get_by_role("table", name="Refunds")
    await expect(refunds.get_by_role("row").nth(1)).to_contain_text("$1.99RefundedOperator")
    await check(page, "money-refunds")
    await refunds.get_by_role("link", name="$1.99").first.click()
    await expect(page.get_by_role("heading", name="coins")).to_be_visible()
    await execute(
        server,
        "insert into payment_reversals (app_id, platform, payment_id, reversal_id, kind, amount, currency, state,"
        " happened_at, version) values ('default', 'cardpay', $1, $1, 'reversal', 500, 'EUR', 'taken', now(), 0)",
        wallet.uid,
    )
    await execute(
        server,
        "insert into reversal_details (app_id, platform, payment_id, reversal_id, uid, order_id, is_dispute,"
        " status, due_at, happened_at) values ('default', 'cardpay', $1, $1, $1, $1, true, 'needs_response',"
        " now() + interval '5 days', now())",
        wallet.uid,
    )
    await page.goto(f"{server.url}/console#/money/disputes?state=open")
    disputes = page.get_by_role("table", name="Disputes")
    await expect(disputes.get_by_role("row").nth(1)).to_contain_text("€5.00Open")
    await check(page, "money-disputes")
    await page.get_by_label("Status").select_option("Won")
    await expect(page.get_by_text("No disputes.")).to_be_visible()
    await page.get_by_role("link", name="Sales", exact=True).click()
    sums = page.get_by_role("region", name="USD", exact=True)
    await expect(sums.get_by_role("img", name="Payments in USD by day")).to_be_visible()
    await check(page, "money-sales")
    await sums.get_by_text("Show as a table").click()
    await expect(sums.get_by_role("table")).to_contain_text("$")
    await check(page, "money-sales-table")


CARD_PAYMENT = """
insert into card_payments (payment_id, app_id, uid, config, amount, currency, intent_id, status, created_at,
    checked_at)
values ($1, 'default', $1, 'Default', 199, 'USD', $2, 'requires_payment_method', now(), now())
"""
DECLINED = """
insert into webhooks (webhook_id, app_id, source, config, headers, body, received_at, status)
values ($1, 'default', 'cardpay', 'Default', '{}', $2, now(), 'done')
"""


async def test_only_a_card_payment_that_was_tried_is_declined(page: Page, server: Server) -> None:
    uid, _ = await server.login()
    intent = f"pi_{uid}"
    await execute(server, CARD_PAYMENT, uid, intent)
    await page.goto(f"{server.url}/console#/money/orders?platform=cardpay")
    row = page.get_by_role("row").filter(has_text=uid[:8])
    await expect(row).to_contain_text("Waits for a card")
    address = f"{server.url}/console#/users/default/{uid}/orders/{uid}"
    await page.goto(address)
    await expect(page.get_by_text("Waits for a card", exact=True)).to_be_visible()
    await execute(server, DECLINED, uid, dumps({"type": "payment_intent.payment_failed", "id": intent}))
    await page.reload()
    await expect(page.get_by_text("Declined", exact=True)).to_be_visible()
    await expect(page.get_by_text("The payment was declined.")).to_be_visible()


async def test_a_viewer_cannot_refund(
    chromium: Browser, server: Server, page_faults: PageFaults, wallet: Wallet
) -> None:
    await bought(wallet)
    async with viewing(chromium, server, page_faults) as page:
        await page.goto(f"{server.url}/console#/money/orders")
        await expect(page.get_by_role("table", name="Payments").get_by_text("Completed").first).to_be_visible()
        await expect(page.get_by_role("button", name="Refund")).to_have_count(0)
