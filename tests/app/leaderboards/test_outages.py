"""Boards while Valkey or PostgreSQL is away, and after Valkey is back with nothing in it."""

import pytest

from tests.app.leaderboards.boards import Boards
from tests.app.valkey_proxy import ValkeyProxy, settings, valkey_proxy
from tests.running.servers import Server
from tests.waiting import until

__all__ = ["settings", "valkey_proxy"]


@pytest.fixture
def boards(server: Server) -> Boards:
    return Boards(server)


async def test_score_that_valkey_did_not_get_is_ranked_when_it_is_sent_again(
    boards: Boards, valkey_proxy: ValkeyProxy
) -> None:
    await boards.configure()
    one, two = await boards.users(2)
    await boards.put(one, 5)
    await boards.read(one)
    await boards.indexed()
    body = {"name": boards.name, "data": {"score": 6}}
    await valkey_proxy.stop()
    status, reply = await boards.s2s(two, "/leaderboard/data", body)
    assert (status, reply["error"]["error_type"]) == (503, "redis_service"), reply
    await valkey_proxy.start()

    async def works() -> bool:
        return (await boards.s2s(two, "/leaderboard/data", body))[0] == 200

    await until(works)
    assert await boards.ranked(one) == [two, one]


async def test_ranks_are_counted_while_valkey_is_away_and_few_queries_wait_for_that(
    boards: Boards, valkey_proxy: ValkeyProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    await boards.configure()
    users = await boards.users(4)
    for score, uid in enumerate(users[:3]):
        await boards.put(uid, -score, extra={"n": score})
    await boards.read(users[0])
    await boards.indexed()
    asked = {"name": boards.name, "from": 1, "to": 2, "around": 1}
    expected = [await boards.s2s(uid, "/leaderboard", asked) for uid in users]
    await valkey_proxy.stop()
    for uid, (_, before) in zip(users, expected, strict=True):
        status, reply = await boards.s2s(uid, "/leaderboard", asked)
        assert status == 200, reply
        for name in ("rank_data", "around_data", "self_rank", "period"):
            assert reply["leaderboard"][name] == before["leaderboard"][name]
    monkeypatch.setattr("app.leaderboards.query._COUNT_S", 0.05)
    counting = boards.server.services.boards.counting
    async with counting, counting:
        status, reply = await boards.s2s(users[0], "/leaderboard", asked)
    assert (status, reply["error"]["error_type"]) == (503, "redis_service"), reply


async def test_valkey_that_comes_back_empty(boards: Boards) -> None:
    await boards.configure()
    users = await boards.users(3)
    for uid in users:
        await boards.put(uid, 1)
    await boards.read(users[0])
    await boards.indexed()
    client = boards.server.services.valkey.client
    await client.delete(
        *[key async for key in client.scan_iter(f"{boards.server.services.settings.redis_prefix}*", count=10_000)]
    )
    for _ in range(2):
        assert await boards.ranked(users[0]) == users
        assert (await boards.read(users[2], around=1))["self_rank"] == 3
        await boards.indexed()
