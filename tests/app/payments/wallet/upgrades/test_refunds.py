"""What an upgrade refunds: the smaller of the unused time and the unused units of the old payment."""

from datetime import UTC, datetime, timedelta

import pytest

from tests.app.callers import work_off
from tests.app.operator_calls import call
from tests.app.payments.wallet.wallets import PRODUCTS, Wallet, put
from tests.app.predictions.hosts import Studio
from vendors.sandbox.faults import key_of

START = datetime(2027, 4, 1, 12, tzinfo=UTC)
"""A month of 30 days, which costs 9.99 and grants 30 units."""


@pytest.fixture
async def buyer(wallet: Wallet) -> Wallet:
    await wallet.travel(START)
    return wallet


async def use_units(wallet: Wallet, units: int) -> None:
    """Use units of the subscription by a prediction."""
    studio = Studio(wallet.server, wallet.sandbox, wallet.uid, wallet.session)
    await studio.set_up(quota={"asset": "pro", "amount": units})
    status, answer = await studio.predict()
    assert status == 200, answer


async def upgraded(wallet: Wallet, sub_id: str, product: str = "year") -> str:
    """Upgrade to a product and let the refunds be made. Return the id of the new subscription."""
    status, answer = await wallet.upgrade(sub_id, product)
    assert status == 200, answer
    new_id: str = answer["walletpay_sub"]["id"]
    await wallet.approve(answer["walletpay_sub"]["approve_link_href"])
    assert (await wallet.get(f"walletpay_sub/{new_id}/sync_upgrade"))[0] == 200
    await work_off(wallet.server.services)
    return new_id


async def refunds(wallet: Wallet) -> list[str]:
    return [made["body"]["amount"]["total"] for made in wallet.calls("/refund")]


@pytest.mark.parametrize(
    ("days", "used", "expected"),
    [
        (0, 30, []),
        (0, 15, ["5.00"]),
        (0, 1, ["9.66"]),
        (10, 15, ["5.00"]),
        (20, 15, ["3.33"]),
        (20, 29, ["0.33"]),
    ],
)
async def test_the_smaller_of_unused_time_and_unused_units_is_refunded(
    buyer: Wallet, days: int, used: int, expected: list[str]
) -> None:
    old = await buyer.subscribed()
    await use_units(buyer, used)
    await buyer.travel(START + timedelta(days=days))
    await upgraded(buyer, old)
    assert await refunds(buyer) == expected
    [payment] = [found for found in (await buyer.books())["payments"] if found["subscription_id"] == old]
    assert payment["refunded"] == sum(int(amount.replace(".", "")) for amount in expected)


async def test_units_that_are_used_before_each_upgrade_are_paid_each_time(buyer: Wallet) -> None:
    await put(buyer.server, "products", "year", {**PRODUCTS["year"], "quantity": 30})
    sub_id = await buyer.subscribed()
    for product in ("year", "month"):
        await use_units(buyer, 30)
        sub_id = await upgraded(buyer, sub_id, product)
    assert await refunds(buyer) == []


async def test_units_that_are_given_back_are_unused(buyer: Wallet) -> None:
    old = await buyer.subscribed()
    studio = Studio(buyer.server, buyer.sandbox, buyer.uid, buyer.session)
    await studio.set_up(quota={"asset": "pro", "amount": 30})
    assert (await studio.predict(fail="the units are given back"))[0] == 200
    await upgraded(buyer, old)
    assert await refunds(buyer) == ["9.99"]


async def test_units_that_an_operator_adds_or_takes_are_not_used_units(buyer: Wallet) -> None:
    old = await buyer.subscribed()
    await use_units(buyer, 15)
    change = {"name": "pro", "subscription": old, "quantity": 10}
    path = f"/admin/api/users/default/{buyer.uid}/assets"
    assert (await call(buyer.server, "PATCH", path, change, reason="support", key=old))[0] == 200
    await upgraded(buyer, old)
    assert await refunds(buyer) == ["5.00"]


async def test_a_renewal_is_refunded_by_the_units_of_its_own_period(buyer: Wallet) -> None:
    old = await buyer.subscribed()
    await use_units(buyer, 30)
    status, answer = await buyer.upgrade(old)
    assert status == 200
    await buyer.renew(old)
    await buyer.sync(old)
    await use_units(buyer, 15)
    await buyer.approve(answer["walletpay_sub"]["approve_link_href"])
    assert (await buyer.get(f"walletpay_sub/{old}/sync_upgrade"))[0] == 200
    await work_off(buyer.server.services)
    assert await refunds(buyer) == ["5.00"]


async def test_a_period_that_was_renewed_before_its_end_is_used_up(buyer: Wallet) -> None:
    """The platform renews at 10:00, two hours before the first period ends."""
    old = await buyer.subscribed()
    await buyer.renew(old)
    await buyer.sync(old)
    await upgraded(buyer, old)
    assert await refunds(buyer) == ["9.99"]


REFUSALS = ["REFUND_EXCEEDED_TRANSACTION_AMOUNT", "TRANSACTION_REFUSED", "REFUND_AMOUNT_EXCEEDED"]
"""Errors of refunds that exceed what is left of a payment: two of payments v1, whose sales pay for subscriptions,
and one of payments v2. `TRANSACTION_REFUSED` is also the error of other refusals."""


async def refunded_by_hand(wallet: Wallet, value: str | None) -> tuple[str, str]:
    """Subscribe, and refund a part of the payment at the platform, which no webhook reports.

    Ten days later, 6.66 of the payment are unused. Return the ids of the subscription and of the payment.
    """
    old = await wallet.subscribed()
    sale: str = (await wallet.sync(old))[1]["walletpay_sub"]["latest_transaction"]["id"]
    await wallet.travel(START + timedelta(days=10))
    await wallet.control("refund", payment_id=sale, value=value)
    return old, sale


@pytest.mark.parametrize("name", REFUSALS)
async def test_what_is_left_is_refunded_and_operators_are_told_of_the_rest(buyer: Wallet, name: str) -> None:
    """The names are those of PayPal's references of payments v1 (deprecated) and v2, which list error names."""
    await buyer.control("refuse_refunds", name=name)
    old, sale = await refunded_by_hand(buyer, "5.00")
    await upgraded(buyer, old)
    assert await refunds(buyer) == ["6.66", "4.99"]
    assert len({made["key"] for made in buyer.calls("/refund")}) == 2
    [payment] = [found for found in (await buyer.books())["payments"] if found["id"] == sale]
    assert (payment["status"], payment["refunded"]) == ("REFUNDED", 999)
    [found] = await buyer.mismatches("refund_refused")
    assert (found["subject"], found["detail"]) == (sale, f"1.67 USD of 6.66 USD: {name}")
    assert await buyer.rows("select state, amount from wallet_refunds") == [("done", 499)]
    assert await buyer.rows("select state from wallet_upgrades") == [("done",)]


async def test_several_refunds_by_hand_are_counted(buyer: Wallet) -> None:
    old, sale = await refunded_by_hand(buyer, "2.00")
    await buyer.control("refund", payment_id=sale, value="6.00")
    await upgraded(buyer, old)
    assert await refunds(buyer) == ["6.66", "1.99"]


async def test_a_refund_by_hand_that_leaves_enough_changes_nothing(buyer: Wallet) -> None:
    old, _ = await refunded_by_hand(buyer, "3.33")
    await upgraded(buyer, old)
    assert await refunds(buyer) == ["6.66"]
    assert await buyer.mismatches("refund_refused") == []


async def test_a_payment_that_is_refunded_by_hand_as_a_whole_needs_no_refund(buyer: Wallet) -> None:
    old, sale = await refunded_by_hand(buyer, None)
    await upgraded(buyer, old)
    [payment] = [found for found in (await buyer.books())["payments"] if found["id"] == sale]
    assert payment["refunded"] == 999
    assert await buyer.mismatches("refund_refused") == []
    assert await buyer.rows("select state from wallet_upgrades") == [("done",)]


@pytest.mark.parametrize("name", ["TRANSACTION_REFUSED", "PARTIAL_REFUND_NOT_ALLOWED"])
async def test_a_refusal_of_any_partial_refund_is_reported_as_a_whole(buyer: Wallet, name: str) -> None:
    await buyer.control("refuse_refunds", name=name, partial=True)
    old = await buyer.subscribed()
    await buyer.travel(START + timedelta(days=10))
    await upgraded(buyer, old)
    assert await refunds(buyer) == ["6.66"]
    [found] = await buyer.mismatches("refund_refused")
    assert found["detail"] == f"6.66 USD: {name}"


async def test_the_smaller_refund_is_repeated_with_its_key(buyer: Wallet) -> None:
    old, sale = await refunded_by_hand(buyer, "5.00")
    status, answer = await buyer.upgrade(old)
    assert status == 200
    await buyer.approve(answer["walletpay_sub"]["approve_link_href"])
    await buyer.get(f"walletpay_sub/{old}/sync_upgrade")
    # The eighth call of the job is the smaller refund, which is made and not answered.
    await buyer.configure(client_secret=key_of(fault="cut_mid_stream", position="before", skip=7, times=1))
    await work_off(buyer.server.services)
    assert await buyer.rows("select state, amount from wallet_refunds") == [("pending", 499)]
    await buyer.rows("update procrastinate_jobs set scheduled_at = null where status = 'todo'")
    await work_off(buyer.server.services)
    assert await refunds(buyer) == ["6.66", "4.99", "4.99"]
    assert len({made["key"] for made in buyer.calls("/refund")}) == 2
    [payment] = [found for found in (await buyer.books())["payments"] if found["id"] == sale]
    assert payment["refunded"] == 999
    assert await buyer.rows("select state, amount from wallet_refunds") == [("done", 499)]
    assert len(await buyer.mismatches("refund_refused")) == 1
