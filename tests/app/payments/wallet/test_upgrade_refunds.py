"""What an upgrade refunds: the smaller of the unused time and the unused units of the old payment."""

from datetime import UTC, datetime, timedelta

import pytest

from tests.app.callers import work_off
from tests.app.operator_calls import call
from tests.app.payments.wallet.wallets import PRODUCTS, Wallet, put
from tests.app.predictions.hosts import Studio

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
    for product in ("year", "month", "year"):
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
    assert (await call(buyer.server, "PATCH", path, change, reason="support"))[0] == 200
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
