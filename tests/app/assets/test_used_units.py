"""Units of assets are used once for each key, never below zero, and given back once."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from storage.assets import assets, ledger
from storage.assets.differences import find_differences
from storage.assets.entries import Entry
from storage.assets.ledger import TooFewUnits, Use, give_back, spend
from storage.operators.audit import COMMAND
from streams.wire.ids import new_id
from tests.app.operator_calls import call
from tests.calendar.clock import utc_now
from tests.running.servers import Server

KEYS = st.integers(0, 5)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("grant"), st.just(0), st.just(100)),
        st.tuples(st.just("spend"), KEYS, st.integers(1, 150)),
        st.tuples(st.just("give_back"), KEYS, st.just(0)),
    ),
    max_size=20,
)


@pytest.fixture
def server(shared_server: Server) -> Server:
    return shared_server


class User:
    """A user, and the units that the user should have."""

    def __init__(self, server: Server, uid: str) -> None:
        self.server = server
        self.uid = uid
        self.left = 0
        self.used: dict[int, int] = {}
        self.returned: set[int] = set()

    async def grant(self, _: int, __: int) -> None:
        product = {"type": "consumable", "asset": "coins", "quantity": 100}
        await self.server.services.configs.put(
            "default", "products", "coins", product, author="test", origin=COMMAND
        )
        path = f"/admin/api/users/default/{self.uid}/assets"
        status, _ = await call(self.server, "POST", path, {"product": "coins"}, reason="support", key=new_id())
        assert status == 200
        self.left += 100

    async def spend(self, key: int, units: int) -> None:
        if key in self.used:
            assert not await use(self.server, self.uid, key=key, units=units)
        elif units > self.left:
            with pytest.raises(TooFewUnits):
                await use(self.server, self.uid, key=key, units=units)
        else:
            assert await use(self.server, self.uid, key=key, units=units)
            self.left -= units
            self.used[key] = units

    async def give_back(self, key: int, _: int) -> None:
        is_used = key in self.used and key not in self.returned
        assert await returned(self.server, self.uid, key=f"task:{self.uid}-{key}") is is_used
        if is_used:
            self.left += self.used[key]
            self.returned.add(key)


async def use(
    server: Server, uid: str, *, key: int, units: int, name: str = "coins", subscription: str = ""
) -> bool:
    wanted = Use(f"task:{uid}-{key}", name, units, subscription)
    async with server.services.database.transaction() as conn:
        return await spend(conn, "default", uid, use=wanted, now=utc_now(), sinks=server.services.sinks)


async def returned(server: Server, uid: str, *, key: str) -> bool:
    async with server.services.database.transaction() as conn:
        return await give_back(conn, "default", uid, key=key, now=utc_now(), sinks=server.services.sinks)


async def left(server: Server, uid: str) -> int:
    status, answer = await call(server, "GET", f"/admin/api/users/default/{uid}/assets")
    assert status == 200, answer
    return sum(asset["quantity"] for asset in answer["assets"])


async def differences(server: Server) -> list[Any]:
    return [difference async for difference in find_differences(server.services.database)]


async def test_units_follow_from_what_is_granted_used_and_given_back(server: Server) -> None:
    loop = asyncio.get_running_loop()

    @settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
    @given(STEPS)
    @example([("spend", 0, 1), ("grant", 0, 100), ("spend", 0, 101), ("spend", 0, 60), ("spend", 1, 41)])
    @example([("grant", 0, 100), ("spend", 0, 60), ("spend", 0, 20), ("give_back", 0, 0), ("give_back", 0, 0)])
    @example([("grant", 0, 100), ("spend", 0, 100), ("spend", 0, 100), ("give_back", 0, 0), ("spend", 0, 1)])
    def run_example(steps: list[tuple[str, int, int]]) -> None:
        asyncio.run_coroutine_threadsafe(run(server, steps), loop).result()

    await asyncio.to_thread(run_example)


async def run(server: Server, steps: list[tuple[str, int, int]]) -> None:
    uid, _ = await server.login()
    user = User(server, uid)
    for step, key, units in steps:
        await getattr(user, step)(key, units)
        assert await left(server, uid) == user.left
    assert await differences(server) == []


async def test_uses_at_once_do_not_use_more_than_there_is(server: Server) -> None:
    uid, _ = await server.login()
    await User(server, uid).grant(0, 0)
    uses = (use(server, uid, key=number // 2, units=30) for number in range(12))
    results = await asyncio.gather(*uses, return_exceptions=True)
    assert results.count(True) == 3
    assert {type(result) for result in results} <= {bool, TooFewUnits}
    assert await left(server, uid) == 10
    assert await differences(server) == []


async def test_units_of_a_subscription_are_used_until_it_ends(server: Server) -> None:
    uid, _ = await server.login()
    now = utc_now()
    paid = Entry(
        f"wallet:sale:{uid}", "grant", "pro", "subscription", "I-1",
        quantity=30, starts_at=now, ends_at=now + timedelta(days=1),
    )  # fmt: skip
    async with server.services.database.transaction() as conn:
        await ledger.post(conn, "default", uid, entry=paid, now=now, sinks=server.services.sinks)
    assert not await returned(server, uid, key=paid.key)
    assert await use(server, uid, key=1, units=10, name="pro", subscription="I-1")
    async with server.services.database.transaction() as conn:
        pro = await assets.find(conn, "default", uid, name="pro", subscription="I-1")
        assert pro is not None
        assert (pro.units, pro.total_quantity) == (20, 30)
        end = Entry(f"admin:{uid}", "end", "pro", "subscription", "I-1")
        await ledger.post(conn, "default", uid, entry=end, now=now, sinks=server.services.sinks)
    with pytest.raises(TooFewUnits):
        await use(server, uid, key=2, units=10, name="pro", subscription="I-1")
    assert await differences(server) == []
