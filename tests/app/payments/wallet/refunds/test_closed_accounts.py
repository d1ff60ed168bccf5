"""Money that arrives after the account of its user was closed is refunded, exactly once."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from storage.assets.differences import find_differences
from tests.app.callers import work_off
from tests.app.payments.reports import add_sink, brief, reported
from tests.app.payments.wallet.passing import deactivate, is_cancelled, later
from tests.app.payments.wallet.wallets import Wallet
from vendors.sandbox.faults import key_of

STATE = "select state from wallet_refunds"


@pytest.fixture(autouse=True)
async def _explained(wallet: Wallet) -> AsyncIterator[None]:
    yield
    assert [difference async for difference in find_differences(wallet.server.services.database)] == []


async def minutes_later(wallet: Wallet) -> None:
    """Read back what is due, and run the jobs that follow from it."""
    await wallet.rows("update procrastinate_jobs set scheduled_at = null where status = 'todo' returning 1")
    await later(wallet)
    await work_off(wallet.server.services)


async def order_paid_too_late(wallet: Wallet) -> str:
    """Close the account while an order waits for its approval. Return the capture, whose answer is lost."""
    order = await wallet.order()
    await deactivate(wallet)
    await wallet.approve(order["approve_link_href"], fault="lost")
    await wallet.platform("POST", f"/v2/checkout/orders/{order['id']}/capture", {})
    [capture] = (await wallet.books())["payments"]
    return str(capture["id"])


async def subscription_paid_too_late(wallet: Wallet) -> str:
    """Close the account while a subscription waits for its approval. Return the sale."""
    sub = await wallet.subscribe()
    await deactivate(wallet)
    await wallet.approve(sub["approve_link_href"], fault="lost")
    [sale] = (await wallet.books())["payments"]
    return str(sale["id"])


BUYS = [
    pytest.param(order_paid_too_late, id="order"),
    pytest.param(subscription_paid_too_late, id="subscription"),
]


async def refunds(wallet: Wallet) -> list[tuple[str, int, str]]:
    found = (await wallet.books())["refunds"]
    return [(refund["payment_id"], refund["amount"], refund["status"]) for refund in found]


@pytest.mark.parametrize("buy", BUYS)
async def test_it_is_refunded_in_full(wallet: Wallet, buy: Any) -> None:
    await add_sink(wallet.server)
    payment = await buy(wallet)
    for _ in range(3):
        await minutes_later(wallet)
    [paid] = (await wallet.books())["payments"]
    assert await refunds(wallet) == [(payment, paid["amount"], "COMPLETED")]
    assert [call["key"].endswith(":refund") for call in wallet.calls("/refund")] == [True]
    assert await wallet.mismatches("refund_refused") == []
    assert brief(await reported(wallet.server, wallet.uid)) == [
        ("charge", payment, paid["amount"]),
        ("refund", payment, paid["amount"]),
    ]
    if paid["subscription_id"]:
        assert await is_cancelled(wallet, paid["subscription_id"])


@pytest.mark.parametrize("buy", BUYS)
async def test_it_is_refunded_once_even_if_the_answers_are_lost(wallet: Wallet, buy: Any) -> None:
    payment = await buy(wallet)
    await later(wallet)
    await wallet.configure(client_secret=key_of(fault="cut_mid_stream", position="before", rate=0.5, seed=3))
    for _ in range(3):
        await minutes_later(wallet)
    await wallet.configure(client_secret="sandbox")
    await minutes_later(wallet)
    assert [refunded for refunded, *_ in await refunds(wallet)] == [payment]
    assert len({call["key"] for call in wallet.calls("/refund")}) == 1


@pytest.mark.parametrize("buy", BUYS)
@pytest.mark.parametrize("status", ["COMPLETED", "FAILED"])
async def test_a_refund_that_is_only_accepted_is_read_until_it_is_made_or_has_failed(
    wallet: Wallet, buy: Any, status: str
) -> None:
    payment = await buy(wallet)
    await wallet.control("refund_pending")
    await minutes_later(wallet)
    assert await wallet.rows(STATE) == [("accepted",)]
    [refund] = (await wallet.books())["refunds"]
    await wallet.control("turn_refund", refund_id=refund["id"], status=status)
    await minutes_later(wallet)
    assert await wallet.rows(STATE) == [("done" if status == "COMPLETED" else "failed",)]
    failed = await wallet.mismatches("refund_failed")
    assert [mismatch["subject"] for mismatch in failed] == ([] if status == "COMPLETED" else [payment])


async def test_what_the_platform_does_not_refund_is_left_to_operators(wallet: Wallet) -> None:
    capture = await order_paid_too_late(wallet)
    await later(wallet, by=timedelta(days=181))
    await minutes_later(wallet)
    [found] = await wallet.mismatches("refund_refused")
    assert (found["subject"], found["detail"]) == (capture, "1.99 USD: REFUND_TIME_LIMIT_EXCEEDED")
    assert await wallet.rows(STATE) == [("failed",)]
    assert await refunds(wallet) == []


async def test_what_is_left_after_a_refund_by_hand_is_refunded(wallet: Wallet) -> None:
    capture = await order_paid_too_late(wallet)
    await wallet.control("refund", payment_id=capture, value="1.00")
    await later(wallet)
    await wallet.control("refund", payment_id=capture, value="0.50")
    for _ in range(2):
        await minutes_later(wallet)
    assert [amount for _, amount, _ in await refunds(wallet)] == [100, 50, 49]
    [found] = await wallet.mismatches("refund_refused")
    assert (found["subject"], found["detail"]) == (capture, "0.50 USD of 0.99 USD: REFUND_AMOUNT_EXCEEDED")
    assert await wallet.rows("select state, amount from wallet_refunds") == [("done", 49)]
    assert len({call["key"] for call in wallet.calls("/refund")}) == 2


@pytest.mark.parametrize("buy", BUYS)
async def test_what_is_disputed_is_not_refunded_too(wallet: Wallet, buy: Any) -> None:
    payment = await buy(wallet)
    await wallet.control("dispute", payment_id=payment, value="1.00")
    for _ in range(2):
        await minutes_later(wallet)
    [paid] = (await wallet.books())["payments"]
    assert await refunds(wallet) == [(payment, paid["amount"] - 100, "COMPLETED")]
    await wallet.control(
        "resolve_dispute", dispute_id=(await wallet.books())["disputes"][0]["id"], outcome="ACCEPTED"
    )
    await minutes_later(wallet)
    assert [amount for _, amount, _ in await refunds(wallet)] == [paid["amount"] - 100, 100]


async def test_a_payment_that_is_refunded_by_hand_as_a_whole_needs_no_refund(wallet: Wallet) -> None:
    capture = await order_paid_too_late(wallet)
    await wallet.control("refund", payment_id=capture, value="1.00")
    await later(wallet)
    await wallet.control("refund", payment_id=capture)
    for _ in range(2):
        await minutes_later(wallet)
    assert [amount for _, amount, _ in await refunds(wallet)] == [100, 99]
    assert len(wallet.calls("/refund")) == 1
    assert await wallet.mismatches("refund_refused") == []
    assert await wallet.rows(STATE) == [("done",)]


@pytest.mark.parametrize("hour", [8, 18])
async def test_a_renewal_after_the_account_was_closed_is_refunded(wallet: Wallet, hour: int) -> None:
    """The platform renews at 10:00, after the paid period has ended or before."""
    await wallet.travel(datetime(2027, 4, 1, hour, tzinfo=UTC))
    sub_id = await wallet.subscribed()
    await deactivate(wallet)
    await wallet.control("renew", subscription_id=sub_id)
    first, second = (payment["id"] for payment in (await wallet.books())["payments"])
    await wallet.travel(wallet.server.services.clock.now("default") + timedelta(days=32))
    await minutes_later(wallet)
    assert await refunds(wallet) == [(second, 999, "COMPLETED")]
    assert await is_cancelled(wallet, sub_id)
    assert await wallet.entries() == [(f"wallet:sale:{first}", "grant"), (f"wallet:cancel:{sub_id}", "cancel")]
