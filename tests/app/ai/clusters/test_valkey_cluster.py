"""Streams with a Valkey Cluster: nothing is answered twice or lost while primaries fail and slots move."""

from contextlib import AsyncExitStack
from pathlib import Path

from redis.crc import key_slot

from deploy.valkey_cluster import ValkeyCluster
from storage.valkey.refused import REFUSED
from tests.app.ai.clusters.asked import KEY, send, until_answered
from tests.app.ai.conftest import Talk
from tests.app.ai.readers.resumed import resume, text_of
from tests.app.ai.readers.two_servers import at, knows
from tests.peers.sse_client import all_events
from tests.peers.vendor import Vendor
from tests.running.servers import Server


def slot_of(talk: Talk) -> int:
    """Return the slot of the user's streams."""
    return key_slot(talk.server.services.valkey.stream_key("default", talk.uid).encode())


async def test_streams_survive_a_failed_primary_and_their_requests_are_not_answered_twice(
    talk: Talk, strategy, *, other: Server, vendor: Vendor, cluster: ValkeyCluster
) -> None:
    refused = REFUSED.counts()
    await strategy("slow", "slow:Once upon a time")
    await knows(other, "slow")
    elsewhere = at(other, talk)
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(await send(talk, headers=KEY))
        stream_id = first.headers["X-Service-Stream-Id"]
        repeated = await stack.enter_async_context(await send(elsewhere, headers=KEY))
        assert repeated.headers["X-Service-Stream-Id"] == stream_id
        failed = await cluster.owner_of(slot_of(talk))
        await cluster.kill(failed)
        for asker in (talk, elsewhere):
            again = await stack.enter_async_context(await until_answered(asker, KEY))
            assert again.headers["X-Service-Stream-Id"] == stream_id
        assert (await cluster.owner_of(slot_of(talk))) is not failed
        resumed = await stack.enter_async_context(resume(elsewhere, stream_id))
        vendor.release.set()
        for response in (first, repeated, resumed):
            seen = await all_events(response)
            assert seen[-1].name == "end"
            assert text_of(seen) == "Once upon a time"
    assert len(vendor.calls) == 1
    await cluster.start(failed)  # It becomes a replica of the primary that has replaced it.
    await cluster.whole()
    assert (await talk.turn("And then?", "slow"))[-1].name == "end"
    assert REFUSED.counts() == refused


async def test_keys_move_to_a_new_primary_while_streams_run(
    talk: Talk, strategy, *, other: Server, vendor: Vendor, cluster: ValkeyCluster, tmp_path: Path
) -> None:
    refused = REFUSED.counts()
    await strategy("slow", "slow:Once upon a time")
    await knows(other, "slow")
    async with await send(talk, headers=KEY) as first:
        stream_id = first.headers["X-Service-Stream-Id"]
        new = await cluster.add(tmp_path / "new")
        await cluster.move(slot_of(talk), new)
        async with (
            await until_answered(at(other, talk), KEY) as again,
            resume(at(other, talk), stream_id) as resumed,
        ):
            assert again.headers["X-Service-Stream-Id"] == stream_id
            vendor.release.set()
            for response in (first, again, resumed):
                assert text_of(await all_events(response)) == "Once upon a time"
    assert await cluster.ask(new, "DBSIZE") > 0
    assert len(vendor.calls) == 1
    assert REFUSED.counts() == refused
