"""Whatever happens, in whatever order, and whatever is lost or repeated, users own what the platform's books imply.

After each step, access is not lost while the platform says active and paid, and nothing is granted that was not
paid. In the end, the assets follow from the books.
"""

import asyncio
from datetime import datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.app.payments.wallet.schedules.owed import GRACE, Plan
from tests.app.payments.wallet.schedules.schedule import Schedule, Step
from tests.app.payments.wallet.schedules.settled import check
from tests.app.payments.wallet.schedules.steps import EXAMPLES, STARTS, STEPS
from tests.app.payments.wallet.wallets import MONTHLY, PRODUCTS, WEBHOOK, YEARLY, Wallet, add_plan, put, wallet_at
from tests.running.servers import Server
from vendors.sandbox.server import Running

LAST_OF_JANUARY, LAST_IN_LEAP_YEAR, LAST_OF_MAY, LEAP_DAY, MARCH = STARTS


async def example(server: Server, sandbox: Running, start: datetime, *steps: Step) -> None:
    """Run the steps of a schedule from an instant on."""
    async with wallet_at(server, sandbox) as wallet:
        await wallet.control("webhook", id=WEBHOOK, url=f"{server.url}/bp/webhook/walletpay/default/Default")
        await wallet.configure(grace_s=int(GRACE.total_seconds()))
        schedule = await new_schedule(wallet)
        await wallet.travel(start)
        await wallet.find_missed_events()
        for step in steps:
            await schedule.run(step)
        await schedule.jobs.settle()
        await schedule.find_created()
        await check(schedule)


async def new_schedule(wallet: Wallet) -> Schedule:
    """A schedule with a second monthly plan for more units, and one of the same price for another asset."""
    monthly: dict[str, Any] = {"unit": "MONTH", "period": "P1M"}
    plus = await add_plan(wallet, "plus", title="Pro plus", price="19.99", quantity=50, **monthly)
    gold = await add_plan(wallet, "gold", title="Gold", price="9.99", asset="gold", **monthly)
    plans = {
        MONTHLY: Plan("pro", "P1M", PRODUCTS["month"]["quantity"]),
        YEARLY: Plan("pro", "P1Y", 0),
        plus: Plan("pro", "P1M", 50),
        gold: Plan("gold", "P1M", 0),
    }
    return Schedule(wallet, {"month": MONTHLY, "plus": plus, "gold": gold, "year": YEARLY}, plans)


async def run_examples(server: Server, sandbox: Running, *, count: int, steps: int) -> None:
    """Run schedules that hypothesis generates, each for a new user. Hypothesis blocks a thread of its own."""
    many = {"count": 1000, "per_s": 1}
    await put(server, "limits", "default", {"rates": {"wallets": many, "payment_reads": many, "signup": many}})
    loop = asyncio.get_running_loop()

    # Without shrinking, which would take minutes.
    @settings(max_examples=count, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(EXAMPLES, st.lists(STEPS, min_size=3, max_size=steps))
    def run_example(begin: tuple[datetime, str, str], steps: list[Step]) -> None:
        start, product, fault = begin
        running = example(server, sandbox, start, ("subscribe", product, fault), *steps)
        asyncio.run_coroutine_threadsafe(running, loop).result()

    await asyncio.to_thread(run_example)


SEEN = ("subscribe", "month"), ("sync_sub",)
"""The user subscribes, and has the asset."""
NEXT = ("pass_time", "past_the_payment")
RENEWED = *SEEN, NEXT
LOST = ("deliver", "lost")
NAMED: dict[str, tuple[datetime, tuple[Step, ...]]] = {
    "used and refunded order": (
        MARCH,
        (("buy",), ("capture",), ("use_coins",), ("refund", 0, "whole"), ("work",), ("buy",), ("capture",)),
    ),
    "order taken in parts": (
        MARCH,
        (("buy",), ("capture",), ("reverse", 0, "half"), ("work",), ("refund", 0, "cent"), ("reverse", 0, "whole")),
    ),
    "renewed on the first": (LAST_OF_JANUARY, (*RENEWED, ("pass_time", "month"), ("use_units", 2))),
    "renewed late, events lost": (
        LAST_IN_LEAP_YEAR,
        (LOST, *SEEN, ("bill_late", 0, 13), ("pass_time", "to_the_end"), NEXT, ("pass_time", "month")),
    ),
    "failed, repeated and paid": (
        LAST_OF_MAY,
        (*SEEN, ("decline", 0, 1), NEXT, ("work",), ("pass_time", "day"), NEXT, ("sync_sub",)),
    ),
    "failed for a whole period": (LEAP_DAY, (*SEEN, ("decline", 0, 3), ("pass_time", "month"), NEXT, NEXT)),
    "suspended over a payment": (
        LAST_OF_JANUARY,
        (*SEEN, ("change", 0, "suspend"), ("work",), ("pass_time", "month"), ("change", 0, "activate"), ("work",)),
    ),
    "first read while suspended": (
        LAST_OF_MAY,
        (
            LOST,
            ("create_sub", "month"),
            ("approve_old",),
            ("change", 0, "suspend"),
            ("sync_sub",),
            ("change", 0, "activate"),
            ("sync_sub",),
            NEXT,
        ),
    ),
    "suspended, and another one begun": (
        MARCH,
        (
            *SEEN,
            ("change", 0, "suspend"),
            ("sync_sub",),
            *SEEN,
            ("pass_time", "day"),
            ("change", 0, "activate"),
            NEXT,
        ),
    ),
    "cancelled": (LAST_OF_MAY, (*RENEWED, ("change", 0, "cancel"), ("pass_time", "day"), ("subscribe", "month"))),
    "revised to the same price": (
        LAST_OF_JANUARY,
        (*SEEN, ("revise", 0, 1), ("pass_time", "day"), NEXT, ("pass_time", "day")),
    ),
    "revised to a higher plan and back": (
        MARCH,
        (LOST, *SEEN, ("revise", 0, 0), NEXT, ("use_units", 3), ("revise", 0, 0), ("sync_sub",), NEXT),
    ),
    "upgraded with used units": (
        LAST_OF_MAY,
        (*SEEN, ("use_units", 3), ("pass_time", "day"), ("upgrade", "plus", "lost"), ("kill", "reconcile"), NEXT),
    ),
    "upgraded twice at once": (
        MARCH,
        (*SEEN, ("begin_upgrade", "year"), ("begin_upgrade", "plus", 1), ("approve_upgrades",), ("work",)),
    ),
    "upgraded twice in a row at once": (
        MARCH,
        (("subscribe", "gold"), ("upgrade", "plus"), ("sync_sub",), ("upgrade", "year"), ("end_replaced",)),
    ),
    "upgraded although disputed": (
        LEAP_DAY,
        (*SEEN, ("begin_upgrade", "plus"), ("dispute", 0, "half", False), ("approve_upgrades",), ("end_replaced",)),
    ),
    "sale reversed in parts": (
        LAST_OF_JANUARY,
        (*SEEN, ("reverse", 0, "half"), ("work",), ("reverse", 0, "whole"), ("work",), NEXT),
    ),
    "dispute won, then lost": (
        LAST_IN_LEAP_YEAR,
        (
            *SEEN,
            ("dispute", 0, "whole", True),
            ("work",),
            ("resolve", 0, "RESOLVED_SELLER_FAVOUR"),
            ("work",),
            ("appeal", 0),
            ("pass_time", "day"),
            ("resolve", 0, "RESOLVED_BUYER_FAVOUR"),
        ),
    ),
    "dispute without events": (
        MARCH,
        (LOST, *SEEN, ("dispute", 0, "whole", False), ("pass_time", "day"), ("resolve", 0, "ACCEPTED"), NEXT),
    ),
    "order disputed": (MARCH, (("buy",), ("capture",), ("dispute", 0, "half", False), ("work",))),
    "subscription disputed": (LAST_OF_MAY, (*SEEN, ("dispute", 0, "whole", False), ("work",))),
    "order reversed by half": (MARCH, (("buy",), ("capture",), ("reverse", 0, "half"), ("work",))),
    "dispute won with its reversal": (
        MARCH,
        (
            ("buy",),
            ("capture",),
            ("dispute", 0, "whole", True),
            ("work",),
            ("resolve", 0, "RESOLVED_SELLER_FAVOUR"),
            ("work",),
        ),
    ),
    "pending payment": (
        LAST_OF_JANUARY,
        (*SEEN, ("pend", 0), NEXT, ("pass_time", "day"), ("settle_pending", True), ("deliver", "reordered"), NEXT),
    ),
    "approved twice": (
        MARCH,
        (
            ("create_sub", "month"),
            ("approve_old",),
            ("kill", "sync_sub"),
            ("race", ["sync_sub", "reconcile"]),
            NEXT,
        ),
    ),
}


@pytest.mark.parametrize(("start", "steps"), NAMED.values(), ids=NAMED.keys())
async def test_assets_follow_from_the_books(
    shared_server: Server, platform: Running, start: datetime, steps: tuple[Step, ...]
) -> None:
    await example(shared_server, platform, start, *steps)


async def test_assets_follow_from_the_books_whatever_happens(shared_server: Server, platform: Running) -> None:
    await run_examples(shared_server, platform, count=5, steps=12)


@pytest.mark.soak
async def test_assets_follow_from_the_books_in_many_schedules(shared_server: Server, platform: Running) -> None:
    await run_examples(shared_server, platform, count=300, steps=25)
