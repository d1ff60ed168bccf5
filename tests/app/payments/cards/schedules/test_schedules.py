"""Whatever is lost, repeated or reordered, users own in the end what they have paid for.

After each step, access is not lost while the platform says active and paid, and lasts no longer than was paid for.
"""

import asyncio
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from storage.assets.differences import find_differences
from tests.app.callers import working
from tests.app.payments.cards.schedules.schedule import Schedule
from tests.app.payments.cards.shop import Shop
from tests.waiting import until

FAULTS = ["cut_mid_stream", "refuse", "unavailable"]
RACERS = st.sampled_from(["webhook", "get", "repeat", "reconciliation"])
STEPS = st.one_of(
    st.tuples(st.just("buy"), st.sampled_from(["charge", "confirm", "leave"])),
    st.tuples(st.just("refund"), st.tuples(st.integers(0, 3), st.booleans())),
    st.tuples(
        st.just("dispute"),
        st.tuples(st.integers(0, 3), st.sampled_from(["needs_response", "won", "lost"]), st.booleans()),
    ),
    st.tuples(st.just("sync"), st.integers(0, 3)),
    st.tuples(st.just("subscribe"), st.booleans()),
    st.tuples(st.just("cancel"), st.none()),
    st.tuples(st.just("end_at"), st.sampled_from([3, 40])),
    st.tuples(st.just("resume"), st.none()),
    st.tuples(st.just("pass_time"), st.sampled_from([40, 31 * 24 * 60])),
    st.tuples(st.just("decline_renewals"), st.none()),
    st.tuples(st.just("webhooks"), st.sampled_from(["lost", "duplicate", "delayed", "reordered", None])),
    st.tuples(st.just("race"), st.tuples(st.integers(0, 3), st.lists(RACERS, min_size=2, max_size=4))),
    st.tuples(st.just("kill"), st.booleans()),
    st.tuples(st.just("fail"), st.tuples(st.sampled_from(FAULTS), st.integers(0, 4))),
)


async def run_examples(shop: Shop, *, count: int, shortest: int = 3, longest: int = 10) -> None:
    """Run schedules that hypothesis generates, each for a new user. Hypothesis blocks a thread of its own."""
    loop = asyncio.get_running_loop()

    # Without shrinking, which would wait for each failing example.
    @settings(max_examples=count, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(st.lists(STEPS, min_size=shortest, max_size=longest))
    def run_example(steps: list[tuple[str, Any]]) -> None:
        asyncio.run_coroutine_threadsafe(example(shop, steps), loop).result()

    await asyncio.to_thread(run_example)


async def example(shop: Shop, steps: list[tuple[str, Any]]) -> None:
    schedule = Schedule(shop, await shop.buyer())
    await schedule.begin()
    await shop.stop_webhooks()
    await shop.send_webhooks()
    async with working(shop.server.services):
        await schedule.watch()
        for step, choice in steps:
            await schedule.play(step, choice)
        await shop.configure()
        await shop.control("webhooks")
        await schedule.pass_time(minutes=5)
        await until(schedule.settled, within_s=30)
    await shop.stop_webhooks()
    await shop.reset_clocks()
    async with shop.server.services.database.connection() as conn:
        await conn.execute("delete from procrastinate_jobs")
    assert [difference async for difference in find_differences(shop.server.services.database)] == []


async def test_assets_follow_from_what_was_paid(shop: Shop) -> None:
    await run_examples(shop, count=3)


@pytest.mark.parametrize("status", ["won", "lost"])
async def test_assets_follow_from_the_result_of_a_dispute(shop: Shop, status: str) -> None:
    steps = [
        ("dispute", (0, "needs_response", True)),
        ("race", (0, ["webhook", "reconciliation"])),
        ("dispute", (0, status, True)),
    ]
    await example(shop, [("buy", "charge"), *steps])


async def test_requests_that_are_killed_or_race_grant_once(shop: Shop) -> None:
    at_once = [["webhook", "get", "repeat", "reconciliation"], ["repeat", "repeat", "get", "webhook"]]
    races = [("race", (0, racers)) for racers in at_once]
    lost, found = ("webhooks", "lost"), ("webhooks", None)
    await example(
        shop, [lost, ("kill", True), *races, found, ("kill", False), *races, ("refund", (0, True)), *races]
    )


RENEWED = [("subscribe", True), ("sync", 0), ("pass_time", 31 * 24 * 60)]


@pytest.mark.parametrize(
    "steps",
    [
        [*RENEWED, ("pass_time", 40), ("refund", (0, False)), ("dispute", (0, "needs_response", True))],
        [("webhooks", "lost"), *RENEWED, ("decline_renewals", None), ("pass_time", 31 * 24 * 60)],
        [("subscribe", True), ("end_at", 40), ("pass_time", 31 * 24 * 60), ("pass_time", 31 * 24 * 60)],
    ],
    ids=["refunded in part and disputed", "declined", "cancelled on a date in the next period"],
)
async def test_access_lasts_through_renewals(shop: Shop, steps: list[tuple[str, Any]]) -> None:
    await example(shop, steps)


@pytest.mark.soak
async def test_assets_follow_from_what_was_paid_in_many_schedules(shop: Shop) -> None:
    await run_examples(shop, count=150)


@pytest.mark.soak
async def test_assets_follow_from_what_was_paid_in_long_schedules(shop: Shop) -> None:
    await run_examples(shop, count=25, shortest=30, longest=60)
