"""Quotas: free units of a day, then units of subscriptions and consumables, each used and returned once."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from storage.assets import ledger, quotas
from storage.assets.differences import find_differences
from storage.assets.entries import Entry
from storage.assets.quotas import Counts, QuotaUsed
from storage.configs.kinds.quota import Quota
from tests.calendar.hard_instants import walk
from tests.running.servers import Server

KEYS = st.integers(0, 4)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("buy"), st.integers(1, 6)),
        st.tuples(st.just("subscribe"), st.integers(1, 6)),
        st.tuples(st.just("wait"), st.integers(1, 20)),
        st.tuples(st.just("use"), KEYS),
        st.tuples(st.just("use"), KEYS),
        st.tuples(st.just("give_back"), KEYS),
    ),
    max_size=25,
)
NOW = datetime(2030, 1, 1, 13, tzinfo=UTC)


@pytest.fixture
def server(shared_server: Server) -> Server:
    return shared_server


class Model:
    """A user, and what the user should have."""

    def __init__(self, server: Server, uid: str, quota: Quota) -> None:
        self.server, self.uid, self.quota = server, uid, quota
        self.now = NOW
        self.bought = self.granted = 0
        self.subscribed = self.of_period = 0
        self.period = 0
        self.ends = NOW
        self.free_used: dict[str, int] = {}
        self.uses: dict[int, tuple[str, int, int, int, int]] = {}
        self.returned: set[int] = set()

    @property
    def day(self) -> str:
        return self.now.date().isoformat()

    @property
    def counts(self) -> Counts:
        free, valid = self.quota.free_per_day, self.now < self.ends
        left = free - self.free_used.get(self.day, 0) + self.bought + (self.subscribed if valid else 0)
        return Counts(left, free + self.granted + (self.of_period if valid else 0))

    async def buy(self, units: int) -> None:
        await self._grant(Entry(f"{self.uid}:{self.now}:{units}", "grant", "coins", "consumable", quantity=units))
        self.bought += units
        self.granted += units
        self.now += timedelta(seconds=1)

    async def subscribe(self, units: int) -> None:
        begins = max(self.ends, self.now)
        if begins > self.now:
            return  # A period begins when the one before it has ended.
        self.ends, self.period = begins + timedelta(hours=30), self.period + 1
        key = f"{self.uid}:period:{self.period}"
        await self._grant(
            Entry(
                key,
                "grant",
                "coins",
                "subscription",
                f"I-{self.uid}",
                quantity=units,
                starts_at=begins,
                ends_at=self.ends,
            )
        )
        self.subscribed = self.of_period = units

    async def wait(self, hours: int) -> None:
        self.now += timedelta(hours=hours)

    async def use(self, key: int) -> None:
        amount = self.quota.amount
        if key in self.uses:
            assert not await self._use(key)
        elif self.counts.left < amount:
            with pytest.raises(QuotaUsed) as raised:
                await self._use(key)
            assert (raised.value.retry_after_s is None) == (self.quota.free_per_day < amount)
        else:
            assert await self._use(key)
            free = min(amount, self.quota.free_per_day - self.free_used.get(self.day, 0))
            subscribed = min(amount - free, self.subscribed if self.now < self.ends else 0)
            bought = amount - free - subscribed
            self.free_used[self.day] = self.free_used.get(self.day, 0) + free
            self.subscribed -= subscribed
            self.bought -= bought
            self.uses[key] = (self.day, free, self.period, subscribed, bought)

    async def give_back(self, key: int) -> None:
        expected = key in self.uses and key not in self.returned
        async with self.server.services.database.transaction() as conn:
            returned = await quotas.give_back(
                conn, "default", self.uid,
                key=self._key(key), now=self.now, sinks=self.server.services.sinks,
            )  # fmt: skip
        assert returned is expected
        if expected:
            day, free, period, subscribed, bought = self.uses[key]
            self.free_used[day] -= free
            self.subscribed += subscribed if period == self.period else 0
            self.bought += bought
            self.returned.add(key)

    async def stored(self) -> Counts:
        async with self.server.services.database.connection() as conn:
            return await quotas.counts(conn, "default", self.uid, quota=self.quota, now=self.now)

    def _key(self, key: int) -> str:
        return f"test:{self.uid}:{key}"

    async def _use(self, key: int) -> bool:
        async with self.server.services.database.transaction() as conn:
            return await quotas.use_units(
                conn, "default", self.uid,
                key=self._key(key), quota=self.quota, now=self.now, sinks=self.server.services.sinks,
            )  # fmt: skip

    async def _grant(self, entry: Entry) -> None:
        services = self.server.services
        async with services.database.transaction() as conn:
            await ledger.post(conn, "default", self.uid, entry=entry, now=self.now, sinks=services.sinks)


async def test_counts_equal_a_model_of_all_calls(server: Server) -> None:
    loop = asyncio.get_running_loop()

    @settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
    @given(steps=STEPS, amount=st.integers(1, 4), free=st.integers(0, 6))
    def run_example(steps: list[tuple[str, int]], amount: int, free: int) -> None:
        quota = Quota(asset="coins", amount=amount, free_per_day=free)
        asyncio.run_coroutine_threadsafe(run(server, steps, quota), loop).result()

    await asyncio.to_thread(run_example)
    assert [difference async for difference in find_differences(server.services.database)] == []


async def run(server: Server, steps: list[tuple[str, int]], quota: Quota) -> None:
    uid, _ = await server.login()
    user = Model(server, uid, quota)
    for step, value in steps:
        await getattr(user, step)(value)
        assert await user.stored() == user.counts


DAY_ENDS_IN_S = {
    "2027-01-28T12:00:00Z": 43_200,
    "2027-01-29T12:00:00Z": 43_200,
    "2027-01-30T12:00:00Z": 43_200,
    "2027-01-31T12:00:00Z": 43_200,
    "2027-02-28T12:00:00Z": 43_200,
    "2027-03-14T07:00:00Z": 61_200,
    "2027-03-28T01:00:00Z": 82_800,
    "2027-03-31T12:00:00Z": 43_200,
    "2027-10-31T01:00:00Z": 82_800,
    "2027-11-07T06:00:00Z": 64_800,
    "2027-12-31T23:59:59Z": 1,
    "2028-01-01T00:00:00Z": 86_400,
    "2028-02-29T12:00:00Z": 43_200,
}


async def test_units_are_free_again_at_midnight_after_each_hard_instant(server: Server) -> None:
    for instant, day_ends_in_s in walk(DAY_ENDS_IN_S):
        uid, _ = await server.login()
        user = Model(server, uid, Quota(asset="coins", amount=1, free_per_day=1))
        user.now = instant
        assert await user._use(1)
        with pytest.raises(QuotaUsed) as refused:
            await user._use(2)
        assert refused.value.retry_after_s == day_ends_in_s
        user.now += timedelta(seconds=day_ends_in_s, microseconds=-1)
        with pytest.raises(QuotaUsed):
            await user._use(3)
        user.now += timedelta(microseconds=1)
        assert await user._use(4)


async def test_uses_at_once_do_not_use_more_than_there_is(server: Server) -> None:
    uid, _ = await server.login()
    user = Model(server, uid, Quota(asset="coins", amount=2, free_per_day=3))
    await user.buy(4)
    results = await asyncio.gather(*(user._use(key // 2) for key in range(20)), return_exceptions=True)
    assert results.count(True) == 3
    assert {type(result) for result in results} == {bool, QuotaUsed}
    assert await user.stored() == Counts(1, 7)


async def test_use_that_differs_from_the_ledger_is_reported(server: Server) -> None:
    uid, _ = await server.login()
    user = Model(server, uid, Quota(asset="coins"))
    await user.buy(2)
    await user.use(1)
    await user.use(2)
    async with server.services.database.connection() as conn:
        await conn.execute("update quota_uses set returned_at = now() where key = $1", f"test:{uid}:1")
        await conn.execute("update quota_uses set entry_keys = '{none}' where key = $1", f"test:{uid}:2")
    found = [
        (difference.subject, difference.problem) async for difference in find_differences(server.services.database)
    ]
    assert found == [
        (f"quota of test:{uid}:1", "is returned, but its entries are not"),
        (f"quota of test:{uid}:2", "has no entry"),
    ]
