"""Streams with a Valkey Cluster: nothing is answered twice or lost while primaries fail and slots move."""

import asyncio
import gc
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
from tests.waiting import until


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


async def test_the_first_resume_of_a_process_after_a_failover_succeeds(
    talk: Talk, strategy, *, other: Server, vendor: Vendor, cluster: ValkeyCluster
) -> None:
    await strategy("slow", "slow:Once upon a time")
    await knows(other, "slow")
    elsewhere = at(other, talk)
    async with await send(talk) as first:
        stream_id = first.headers["X-Service-Stream-Id"]
        log = talk.server.services.valkey.key(f"default:{talk.uid}", "log", stream_id)
        async with resume(elsewhere, stream_id) as before:
            assert before.status == 200
        failed = await cluster.owner_of(key_slot(log.encode()))
        await cluster.kill(failed)
        for server in (talk.server, other):  # Their heartbeats find the replica.
            await until(server.services.heartbeat.try_beat, every_s=0.2)
        async with resume(elsewhere, stream_id) as resumed:
            assert resumed.status == 200, await resumed.text()
            vendor.release.set()
            assert text_of(await all_events(resumed)) == "Once upon a time"


async def test_a_command_that_stays_redirected_fails_and_is_not_sent_once_more(
    talk: Talk, strategy, *, vendor: Vendor, cluster: ValkeyCluster, tmp_path: Path
) -> None:
    await strategy("one", "say:Hello there")
    loop, unread = asyncio.get_running_loop(), []
    new, source = await cluster.add(tmp_path / "new"), await cluster.owner_of(slot_of(talk))
    names = [(await cluster.ask(node, "CLUSTER", "MYID")).decode() for node in (source, new)]
    await cluster.ask(new, "CLUSTER", "SETSLOT", slot_of(talk), "IMPORTING", names[0])
    await cluster.ask(source, "CLUSTER", "SETSLOT", slot_of(talk), "MIGRATING", names[1])
    loop.set_exception_handler(lambda _, context: unread.append(context["message"]))
    try:
        body = talk.params("one") + b"Hello"
        async with talk.post("/bp/ai/conversation", data=body, headers=KEY) as answer:
            assert (answer.status, answer.headers.get("Retry-After")) == (503, "1"), await answer.text()
        assert vendor.calls == []
        assert (await talk.turn("Hello", "one"))[-1].name == "end"  # It needs no key, so it starts without Valkey.
        gc.collect()
    finally:
        loop.set_exception_handler(None)
    assert unread == []
