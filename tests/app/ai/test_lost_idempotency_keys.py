"""A repeated request gets no second stream after Valkey lost its keys, on any process."""

import pytest

from tests.another_server import another_server
from tests.app.ai.conftest import Talk
from tests.app.ai.two_servers import at, knows
from tests.servers import Server
from tests.vendor import Vendor
from tests.waiting import until

KEY = {"Idempotency-Key": "5b1f"}


async def flush(server: Server) -> None:
    """Delete all keys of this deployment, like FLUSHALL."""
    client = server.services.valkey.client
    names = [name async for name in client.scan_iter(f"{server.services.settings.redis_prefix}*")]
    await client.delete(*names)


async def ask(talk: Talk, key: dict[str, str] = KEY) -> tuple[int, str | None]:
    """Send the request. Return the status, and the stream id or `Retry-After`."""
    body = talk.params("slow") + b"story"
    async with talk.post("/bp/ai/conversation", data=body, headers=key) as answer:
        name = "X-Service-Stream-Id" if answer.status == 200 else "Retry-After"
        return answer.status, answer.headers.get(name)


@pytest.mark.parametrize("ended", [False, True])
async def test_repeat_after_a_flush_is_unavailable_until_all_processes_have_registered_their_streams(
    talk: Talk, strategy, server: Server, other: Server, vendor: Vendor, *, ended: bool
) -> None:
    await strategy("slow", "slow:Once upon a time")
    await knows(other, "slow")
    first = await ask(talk)
    assert first[0] == 200
    if ended:
        vendor.release.set()
        await server.services.supervisor.idle()
    await flush(server)
    async with another_server(server.services.settings) as newest:  # It has not seen the flush.
        await knows(newest, "slow")
        askers = [talk, at(other, talk), at(newest, talk)]
        for each in (newest, other, server):
            for asker in askers:
                assert await ask(asker) in {(503, "1"), first}
            await each.services.heartbeat.beat()
        for asker in askers:
            await until_answered(asker, first)
        assert (await ask(at(newest, talk), {"Idempotency-Key": "other"}))[0] == 200
    vendor.release.set()


async def until_answered(talk: Talk, expected: tuple[int, str | None]) -> None:
    """Repeat the request until its answer is a stream, which must be `expected`."""

    async def is_answered() -> bool:
        answer = await ask(talk)
        assert answer in {(503, "1"), expected}
        return answer == expected

    await until(is_answered, every_s=0.02)
