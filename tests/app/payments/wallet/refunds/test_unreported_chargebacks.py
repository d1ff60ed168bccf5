"""A part of an order that a bank takes back takes its part of the units, also if no event reports it."""

from datetime import timedelta

import pytest

from tests.app.payments.wallet.passing import later
from tests.app.payments.wallet.wallets import Wallet

DAY = timedelta(days=1)


async def bought(wallet: Wallet) -> str:
    """Buy 100 coins for 1.99 USD, and return the capture."""
    order = await wallet.order()
    await wallet.approve(order["approve_link_href"])
    await wallet.capture(order["id"])
    return [payment["id"] for payment in (await wallet.books())["payments"]][-1]


@pytest.mark.parametrize(("action", "left"), [("reverse", 75), ("refund", 100)])
async def test_the_capture_says_whether_a_part_was_charged_back(wallet: Wallet, action: str, left: int) -> None:
    """`status_details.reason` of the capture is `CHARGEBACK` (`capture_status_details` of PayPal's OpenAPI).

    What the merchant refunds after that takes nothing.
    """
    capture = await bought(wallet)
    for taking in (action, "refund"):
        await wallet.control(taking, payment_id=capture, value="0.50")
        await later(wallet, DAY)
        assert (await wallet.assets())["coins"]["quantity"] == left


async def test_if_both_are_unknown_neither_counts_as_the_chargeback(wallet: Wallet) -> None:
    capture = await bought(wallet)
    for taking in ("reverse", "refund"):
        await wallet.control(taking, payment_id=capture, value="0.50")
    await later(wallet, DAY)
    assert (await wallet.assets())["coins"]["quantity"] == 100
