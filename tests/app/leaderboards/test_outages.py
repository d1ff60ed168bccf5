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
    for path, sent in (("/leaderboard/data", body), ("/leaderboard", {"name": boards.name, "from": 1, "to": 9})):
        status, reply = await boards.s2s(two, path, sent)
        assert (status, reply["error"]["error_type"]) == (503, "redis_service"), reply
    await valkey_proxy.start()

    async def works() -> bool:
        return (await boards.s2s(two, "/leaderboard/data", body))[0] == 200

    await until(works)
    assert await boards.ranked(one) == [two, one]


async def test_valkey_that_comes_back_empty(boards: Boards) -> None:
    await boards.configure()
    users = await boards.users(3)
    for uid in users:
        await boards.put(uid, 1)
    await boards.read(users[0])
    await boards.indexed()
    client = boards.server.services.valkey.client
    await client.delete(
        *[key async for key in client.scan_iter(f"{boards.server.services.settings.redis_prefix}*")]
    )
    for _ in range(2):
        assert await boards.ranked(users[0]) == users
        assert (await boards.read(users[2], around=1))["self_rank"] == 3
        await boards.indexed()
