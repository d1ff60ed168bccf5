"""An idempotency key that is lost with a primary, while a process still takes the old primary for the new one."""

from contextlib import AsyncExitStack

from redis.crc import key_slot

from deploy.valkey_cluster import ValkeyCluster
from tests.app.ai.clusters.asked import KEY, send, until_answered
from tests.app.ai.clusters.lagging import cut_off, take_over
from tests.app.ai.conftest import Talk
from tests.app.ai.readers.two_servers import at, knows
from tests.peers.vendor import Vendor
from tests.running.servers import Server


async def test_a_process_that_has_not_noticed_a_failover_does_not_answer_a_request_again(
    talk: Talk, strategy, *, other: Server, vendor: Vendor, cluster: ValkeyCluster
) -> None:
    await strategy("slow", "slow:Once upon a time")
    await knows(other, "slow")
    elsewhere = at(other, talk)
    slot = key_slot(talk.server.services.valkey.stream_key("default", talk.uid).encode())
    for asker in (talk, elsewhere):  # Both processes know the user, and the primary of the user's streams.
        async with asker.get("/bp/asset") as answer:
            assert answer.status == 200
    primary = await cluster.owner_of(slot)
    replica = await cut_off(cluster, primary)
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(await send(talk, headers=KEY))
        for server in (talk.server, other):
            await server.services.heartbeat.beat()  # The next one is 10 s away.
        await take_over(cluster, replica, primary)

        unsure = await stack.enter_async_context(await send(elsewhere, headers=KEY))
        assert (unsure.status, unsure.headers.get("Retry-After")) == (503, "1"), unsure.headers
        for asker in (talk, elsewhere):
            again = await stack.enter_async_context(await until_answered(asker, KEY))
            assert again.headers["X-Service-Stream-Id"] == first.headers["X-Service-Stream-Id"]
        vendor.release.set()
    assert len(vendor.calls) == 1
