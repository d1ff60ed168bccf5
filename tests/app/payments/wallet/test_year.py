"""A year of a monthly plan passes in seconds by the clock of a development server, which its sandbox follows."""

import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from storage.assets.differences import find_differences
from tests.app.callers import working
from tests.app.payments.wallet.wallets import WEBHOOK, Wallet, add_plan, wallet_at
from tests.running.servers import Databases, Server, new_server
from tests.waiting import until
from vendors.sandbox.server import Running

CPU_S = 5
"""A year takes about 2 s of CPU."""
BEGAN = datetime(2028, 1, 31, 10, tzinfo=UTC)
"""The day of the month that most months lack, in a leap year."""
MONTHS = [datetime(2028, month, 1, 12, tzinfo=UTC) for month in range(3, 8)]
"""Each is hours after one payment of the first plan and weeks before the next one: they are due on the first day of
each month, at 10:00."""
UNPAID = datetime(2028, 2, 29, 12, tzinfo=UTC)
"""The first period has ended, and the next payment is due on the day after."""
UPGRADED_MONTHS = [datetime(2028, month, 2, 12, tzinfo=UTC) for month in range(8, 13)] + [
    datetime(2029, month, 2, 12, tzinfo=UTC) for month in range(1, 3)
]
"""Each is a day after one payment of the second plan, which begins with the last of `MONTHS`."""
AFTER_THE_END = datetime(2029, 3, 2, 12, tzinfo=UTC)


@pytest.fixture
async def server(databases: Databases, tmp_path: Path, platform: Running) -> AsyncIterator[Server]:
    async with new_server(databases, tmp_path, sandbox_url=platform.url) as running:
        yield running


async def test_a_year_of_a_monthly_plan_passes_in_seconds(server: Server, platform: Running) -> None:
    async with working(server.services), wallet_at(server, platform) as wallet:
        await prepare(wallet)
        began_cpu_s = time.process_time()
        await year(wallet)
        assert time.process_time() - began_cpu_s < CPU_S
        await check(wallet)


async def prepare(wallet: Wallet) -> None:
    """Let the merchant be one of the sandbox that the server runs with, and add a second monthly plan."""
    await wallet.configure(base_url="{sandbox}/paypal")
    await wallet.control("webhook", id=WEBHOOK, url=f"{wallet.server.url}/bp/webhook/walletpay/default/Default")
    await add_plan(wallet, "plus", title="Pro plus", unit="MONTH", period="P1M", price="19.99")


async def year(wallet: Wallet) -> None:
    """Subscribe, upgrade, cancel and refund, while the clock is moved month by month for more than 365 days."""
    await wallet.move_clock(BEGAN)
    sub_id = await wallet.subscribed()
    await wallet.move_clock(UNPAID)
    assert (await wallet.assets())["pro"]["valid_seconds"] > 0
    await pass_months(wallet, MONTHS, grants=1)
    sub_id = await upgraded(wallet, sub_id)
    await pass_months(wallet, UPGRADED_MONTHS, grants=1 + len(MONTHS) + 1)
    await wallet.platform("POST", f"/v1/billing/subscriptions/{sub_id}/cancel", {"reason": "enough"})
    _, answer = await wallet.sync(sub_id)
    await wallet.control("refund", payment_id=answer["walletpay_sub"]["latest_transaction"]["id"])
    await until(lambda: has_kinds(wallet, cancel=2, refund=1))
    assert (await wallet.assets())["pro"]["sub_canceled"]
    await wallet.move_clock(AFTER_THE_END)


async def pass_months(wallet: Wallet, months: list[datetime], *, grants: int) -> None:
    """Move the clock to each time. Each move is one more grant than those that there were."""
    for count, moved_to in enumerate(months, grants + 1):
        await wallet.move_clock(moved_to)
        await granted(wallet, count)
        assert (await wallet.assets())["pro"]["valid_seconds"] > 0


async def upgraded(wallet: Wallet, sub_id: str) -> str:
    """Upgrade to the other plan, and wait until the old subscription is cancelled and refunded."""
    _, answer = await wallet.upgrade(sub_id, "plus")
    await wallet.approve(answer["walletpay_sub"]["approve_link_href"])
    new = str(answer["walletpay_sub"]["id"])
    statement = "select 1 from wallet_upgrades u join wallet_subscriptions on row_id = new_row where uid = $1"
    await until(lambda: wallet.rows(f"{statement} and u.state = 'done'", wallet.uid))
    return new


async def granted(wallet: Wallet, count: int) -> None:
    await until(lambda: has_kinds(wallet, grant=count))


async def has_kinds(wallet: Wallet, **counts: int) -> bool:
    kinds = await wallet.kinds()
    return all(kinds.count(kind) == count for kind, count in counts.items())


async def check(wallet: Wallet) -> None:
    """Every period is granted once and from its payment on, and the last one was refunded."""
    statement = """
        select bp_product_id, starts_at, ends_at from asset_entries where uid = $1 and kind = 'grant'
        order by starts_at
    """
    periods = await wallet.rows(statement, wallet.uid)
    assert [name for name, *_ in periods] == ["month"] * (1 + len(MONTHS)) + ["plus"] * (1 + len(UPGRADED_MONTHS))
    for name, months in (("month", MONTHS), ("plus", UPGRADED_MONTHS)):
        times = [(start, end) for granted, start, end in periods if granted == name]
        assert [start for start, _ in times[1:]] == [month.replace(day=1, hour=10) for month in months]
        assert [end for _, end in times[1:-1]] == [start for start, _ in times[2:]]
    assert periods[-1][2] - periods[0][1] > timedelta(days=365)
    books: dict[str, Any] = await wallet.books()
    assert {subscription["status"] for subscription in books["subscriptions"]} == {"CANCELLED"}
    assert len(books["refunds"]) == 2
    _, answer = await wallet.get("")
    ended = {asset["bp_product_id"]: (asset["is_refund"], asset["valid_seconds"]) for asset in answer["assets"]}
    assert ended == {"month": (False, 0), "plus": (True, 0)}
    assert [difference async for difference in find_differences(wallet.server.services.database)] == []
