"""Disputes of which no event was delivered are read once a day, in as many jobs as it takes."""

from datetime import timedelta

from app.payments.wallet.reconciliation import read_disputes
from storage.configs.rows import ConfigKey
from tests.app.payments.wallet.wallets import Wallet
from tests.calendar.clock import utc_now
from vendors.sandbox.faults import key_of

DISPUTES = "/v1/customer/disputes"
WEEKS = 26
"""How many weeks are listed at first, the last of them in part. Each list has a page at least."""
KEY = ConfigKey("default", "walletpay", "Default")


async def bought(wallet: Wallet) -> str:
    """Buy coins, and return the capture."""
    order = await wallet.order()
    await wallet.approve(order["approve_link_href"])
    await wallet.capture(order["id"])
    return [payment["id"] for payment in (await wallet.books())["payments"]][-1]


async def disputed(wallet: Wallet, count: int) -> list[str]:
    """Buy coins, open disputes about them, one each hour, and return these."""
    await wallet.control("deliveries", fault="lost")
    payment = await bought(wallet)
    for number in range(count):
        await wallet.control("clock", at=(utc_now() + number * timedelta(hours=1)).isoformat())
        await wallet.control("dispute", payment_id=payment, value="0.01")
    return [dispute["id"] for dispute in (await wallet.books())["disputes"]]


def paths(wallet: Wallet) -> list[str]:
    """What the server has read: the ids of disputes, and an empty string for each page of the list."""
    made = [call.asked.get("path", "").partition(DISPUTES) for call in wallet.sandbox.bill.since(0) if call.asked]
    return [rest.removeprefix("/") for _, found, rest in made if found]


async def test_the_list_of_disputes_is_read_page_by_page(wallet: Wallet) -> None:
    disputes = await disputed(wallet, 55)
    await wallet.travel(utc_now() + timedelta(hours=56))
    begun = len(paths(wallet))
    await wallet.reconcile()
    read = paths(wallet)[begun:]
    assert [path for path in read if path] == disputes
    assert read.count("") == WEEKS + 1


async def test_a_job_that_has_no_time_left_is_continued_by_the_next_one(wallet: Wallet) -> None:
    """It reads one dispute or one week without any. No job repeats what an earlier one has done."""
    disputes = await disputed(wallet, 4)
    now = utc_now() + timedelta(hours=5)
    await wallet.travel(now)
    jobs = []
    for _ in range(WEEKS + len(disputes)):
        begun = len(paths(wallet))
        await read_disputes(wallet.server.services, KEY, now=now, within_s=0)
        jobs.append(paths(wallet)[begun:])
    assert jobs == [*([""] for _ in range(WEEKS - 1)), *(["", dispute] for dispute in disputes), [""]]
    ended = len(paths(wallet))
    await read_disputes(wallet.server.services, KEY, now=now, within_s=0)
    assert len(paths(wallet)) == ended
    await read_disputes(wallet.server.services, KEY, now=now + timedelta(days=1), within_s=60)
    assert paths(wallet)[ended:] == ["", *disputes]


async def test_disputes_that_may_not_be_listed_are_read_once_they_may(wallet: Wallet) -> None:
    [dispute] = await disputed(wallet, 1)
    await wallet.configure(client_secret=key_of(fault="out_of_quota"))
    await wallet.travel(utc_now() + timedelta(minutes=1))
    await wallet.reconcile()
    await wallet.configure(client_secret="sandbox")
    await wallet.travel(utc_now() + timedelta(days=3))
    await wallet.reconcile()
    assert dispute in paths(wallet)
