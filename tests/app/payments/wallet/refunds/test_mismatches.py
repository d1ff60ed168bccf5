"""Refunds that the platform makes later or not at all, and payments of another amount than was ordered."""

from datetime import timedelta
from typing import Any

import pytest

from tests.app.callers import work_off
from tests.app.operator_calls import call
from tests.app.payments.reports import add_sink, brief, reported
from tests.app.payments.wallet.wallets import PRODUCTS, Wallet, put
from tests.calendar.clock import utc_now

STATES = """
select upgrade.state, refund.state, refund_id
from wallet_upgrades upgrade join wallet_refunds refund on subscription_row = old_row
"""


async def upgraded(wallet: Wallet) -> str:
    """Upgrade a subscription whose refund is pending, and let the jobs do what they can. Return the old sale."""
    old = await wallet.subscribed()
    sale = (await wallet.sync(old))[1]["walletpay_sub"]["latest_transaction"]["id"]
    await wallet.travel(utc_now() + timedelta(days=10))
    await wallet.control("refund_pending")
    new = (await wallet.upgrade(old))[1]["walletpay_sub"]
    await wallet.approve(new["approve_link_href"])
    assert (await wallet.get(f"walletpay_sub/{new['id']}/sync_upgrade"))[0] == 200
    await work_off(wallet.server.services)
    return str(sale)


async def minutes_later(wallet: Wallet) -> None:
    await wallet.travel(wallet.server.services.clock.now("default") + timedelta(minutes=3))
    await wallet.reconcile()
    await work_off(wallet.server.services)


async def states(wallet: Wallet) -> tuple[str, str, str]:
    """The state of the upgrade and of its refund, and the platform's id of that."""
    [row] = await wallet.rows(STATES)
    found: tuple[str, str, str] = row
    return found


async def refunds(wallet: Wallet) -> list[dict[str, Any]]:
    return [event for event in await reported(wallet.server, wallet.uid) if event["kind"] == "refund"]


async def test_a_pending_refund_is_read_back_until_it_is_made(wallet: Wallet) -> None:
    await add_sink(wallet.server)
    await upgraded(wallet)
    for _ in range(2):
        *found, refund_id = await states(wallet)
        assert found == ["old_cancelled", "accepted"]
        assert await refunds(wallet) == []
        await minutes_later(wallet)
    await wallet.control("turn_refund", refund_id=refund_id, status="COMPLETED")
    await minutes_later(wallet)
    assert await states(wallet) == ("done", "done", refund_id)
    assert [event["refund_id"] for event in await refunds(wallet)] == [refund_id]
    assert len(wallet.calls("/refund")) == 1


@pytest.mark.parametrize("status", ["FAILED", "CANCELLED"])
async def test_a_refund_that_fails_after_all_is_reported_to_operators(wallet: Wallet, status: str) -> None:
    await add_sink(wallet.server)
    sale = await upgraded(wallet)
    *_, refund_id = await states(wallet)
    await wallet.control("turn_refund", refund_id=refund_id, status=status)
    for _ in range(2):
        await minutes_later(wallet)
    assert await states(wallet) == ("done", "failed", refund_id)
    [found] = await wallet.mismatches("refund_failed")
    assert (found["platform"], found["subject"], found["detail"][-len(status) :]) == ("walletpay", sale, status)
    assert await refunds(wallet) == []


async def test_a_refund_that_the_platform_refuses_is_reported_to_operators(wallet: Wallet) -> None:
    old = await wallet.subscribed()
    sale = (await wallet.sync(old))[1]["walletpay_sub"]["latest_transaction"]["id"]
    await wallet.control("refund", payment_id=sale, value="9.00")
    await wallet.travel(utc_now() + timedelta(days=3))
    new = (await wallet.upgrade(old))[1]["walletpay_sub"]
    await wallet.approve(new["approve_link_href"])
    await wallet.get(f"walletpay_sub/{new['id']}/sync_upgrade")
    await work_off(wallet.server.services)
    [found] = await wallet.mismatches("refund_refused")
    assert (found["subject"], "REFUND_EXCEEDED_TRANSACTION_AMOUNT" in found["detail"]) == (sale, True)


@pytest.mark.parametrize(
    ("value", "currency", "detail"), [("1.50", "USD", "1.50 USD"), ("1.99", "EUR", "1.99 EUR")]
)
async def test_an_order_of_which_something_else_is_paid_grants_nothing_and_is_left_to_operators(
    wallet: Wallet, value: str, currency: str, detail: str
) -> None:
    await add_sink(wallet.server)
    order = await wallet.order()
    await wallet.control("reprice", order_id=order["id"], value=value, currency=currency)
    await wallet.approve(order["approve_link_href"])
    for _ in range(2):
        _, answer = await wallet.capture(order["id"])
    assert (answer["walletpay_order"]["status"], await wallet.entries()) == ("COMPLETED", [])
    [capture] = (await wallet.books())["payments"]
    [found] = await wallet.mismatches("amount_differs")
    assert found["subject"] == capture["id"]
    assert found["detail"] == f"{detail} were paid instead of 1.99 USD for the order {order['id']}"
    _, traced = await call(wallet.server, "GET", f"/admin/api/users/default/{wallet.uid}/orders/{order['id']}")
    assert (traced["verdict"], traced["mismatches"][0]["subject"]) == ("amount_differs", capture["id"])
    await wallet.control("refund", payment_id=capture["id"])
    await wallet.get(f"walletpay/sync/{order['id']}")
    amount = capture["amount"]
    assert brief(await reported(wallet.server, wallet.uid)) == [
        ("charge", capture["id"], amount),
        ("refund", capture["id"], amount),
    ]


@pytest.mark.parametrize(
    ("price", "detail"),
    [
        ({"amount": 999, "currency": "USD"}, None),
        ({"amount": 899, "currency": "USD"}, "9.99 USD were paid instead of 8.99 USD"),
        ({"amount": 999, "currency": "EUR"}, "9.99 USD were paid instead of 9.99 EUR"),
    ],
)
async def test_each_period_of_which_another_amount_is_paid_is_reported_to_operators(
    wallet: Wallet, price: dict[str, Any], detail: str | None
) -> None:
    await put(wallet.server, "products", "month", PRODUCTS["month"] | {"price": price})
    sub_id = await wallet.subscribed()
    await wallet.renew(sub_id)
    for _ in range(2):
        await wallet.sync(sub_id)
    assert await wallet.kinds() == ["grant", "grant"]
    found = await wallet.mismatches("amount_differs")
    assert [mismatch["detail"] for mismatch in found] == ([] if detail is None else [detail, detail])
