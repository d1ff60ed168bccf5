"""Money that a dispute may take, or has taken, is not refunded by an upgrade too."""

from collections.abc import AsyncIterator

import pytest

from storage.assets.differences import find_differences
from tests.app.callers import work_off
from tests.app.payments.reports import add_sink, brief, reported
from tests.app.payments.wallet.deliveries import PATH
from tests.app.payments.wallet.wallets import WEBHOOK, Wallet, error
from tests.waiting import until


@pytest.fixture(autouse=True)
async def _connected(wallet: Wallet) -> AsyncIterator[None]:
    await wallet.control("webhook", id=WEBHOOK, url=wallet.server.url + PATH)
    yield
    assert [difference async for difference in find_differences(wallet.server.services.database)] == []


async def happens(wallet: Wallet, action: str, **what: str | bool) -> None:
    await wallet.control(action, **what)
    await until(lambda: wallet.sandbox.sandbox.deliveries.is_idle)
    await work_off(wallet.server.services)


async def payment_of(wallet: Wallet, sub_id: str) -> dict[str, int | str]:
    [found] = [paid for paid in (await wallet.books())["payments"] if paid["subscription_id"] == sub_id]
    return dict(found)


async def resolve(wallet: Wallet, outcome: str) -> None:
    dispute_id = (await wallet.books())["disputes"][-1]["id"]
    await happens(wallet, "resolve_dispute", dispute_id=dispute_id, outcome=outcome)


async def test_a_subscription_whose_last_payment_is_disputed_is_not_upgraded(wallet: Wallet) -> None:
    old = await wallet.subscribed()
    await happens(wallet, "dispute", payment_id=str((await payment_of(wallet, old))["id"]))
    assert error(await wallet.upgrade(old)) == (400, "invalid_operation")
    await resolve(wallet, "DENIED")
    assert (await wallet.upgrade(old))[0] == 200


@pytest.mark.parametrize(("value", "refunded"), [("9.99", 0), ("4.00", 599)])
@pytest.mark.parametrize("outcome", ["RESOLVED_BUYER_FAVOUR", "DENIED"])
async def test_an_upgrade_that_is_approved_during_a_dispute_refunds_what_is_not_disputed(
    wallet: Wallet, value: str, refunded: int, outcome: str
) -> None:
    old = await wallet.subscribed()
    status, answer = await wallet.upgrade(old)
    assert status == 200
    payment = await payment_of(wallet, old)
    await happens(wallet, "dispute", payment_id=str(payment["id"]), value=value)
    await wallet.approve(answer["walletpay_sub"]["approve_link_href"])
    assert (await wallet.get(f"walletpay_sub/{old}/sync_upgrade"))[0] == 200
    await work_off(wallet.server.services)
    assert (await payment_of(wallet, old))["refunded"] == refunded
    await resolve(wallet, outcome)
    lost = outcome != "DENIED"
    assert (await payment_of(wallet, old))["refunded"] == (999 if lost else refunded)


@pytest.mark.parametrize("action", ["dispute", "refund"])
async def test_a_refund_that_is_not_made_yet_refunds_nothing_that_is_gone(wallet: Wallet, action: str) -> None:
    """The event of a refund by hand is lost, so that only the platform's refusal tells it."""
    await add_sink(wallet.server)
    old = await wallet.subscribed()
    answer = (await wallet.upgrade(old))[1]
    await wallet.approve(answer["walletpay_sub"]["approve_link_href"])
    assert (await wallet.get(f"walletpay_sub/{old}/sync_upgrade"))[0] == 200
    assert await wallet.rows("select state from wallet_refunds") == [("pending",)]
    payment = await payment_of(wallet, old)
    if action == "refund":
        await wallet.control("deliveries", fault="lost")
    # The jobs run at the same time, and the refund might be made before the event of the dispute is applied.
    refunding = "where status = 'todo' and task_name = 'end_replaced_subscription'"
    await wallet.rows(f"update procrastinate_jobs set scheduled_at = 'infinity' {refunding}")
    await happens(wallet, action, payment_id=str(payment["id"]))
    await wallet.rows(f"update procrastinate_jobs set scheduled_at = null {refunding}")
    await work_off(wallet.server.services)
    assert len((await wallet.books())["refunds"]) == (action == "refund")
    assert await wallet.rows("select state from wallet_refunds") == [("done",)]
    assert [kind for kind, *_ in brief(await reported(wallet.server, wallet.uid))] == ["charge", "charge"]
