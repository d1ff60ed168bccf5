"""A stream that has ended can be read for a while, on every server."""

import asyncio

import pytest

from app.settings import Settings
from tests.app.ai.conftest import Talk
from tests.app.ai.readers.resumed import limits, resume
from tests.app.ai.readers.two_servers import at
from tests.peers.sse_client import all_events, events
from tests.peers.vendor import Vendor
from tests.running.servers import Server
from tests.waiting import until


@pytest.fixture
def server(shared_server: Server) -> Server:
    return shared_server


@pytest.fixture
def settings(server: Server) -> Settings:
    return server.services.settings


async def test_finished_stream_can_be_read_again_on_every_server(
    talk: Talk, strategy, server: Server, other: Server
) -> None:
    await strategy("one", "say:Hello there")
    async with talk.say("hi", "one") as response:
        stream_id = response.headers["X-Service-Stream-Id"]
        seen = await all_events(response)
    for reader in (talk, at(other, talk)):
        async with resume(reader, stream_id) as again:
            assert await all_events(again) == seen
        async with resume(reader, stream_id, 3) as again:
            assert await all_events(again) == seen[3:]
        async with resume(reader, stream_id, seen[-1].id) as again:
            assert again.status == 204
        async with resume(reader, stream_id, seen[-1].id + 1) as again:
            assert again.status == 400


async def test_finished_streams_cannot_be_read_after_readable_s(
    talk: Talk, strategy, server: Server, other: Server
) -> None:
    await limits(server, readable_s=0.2)
    await strategy("one", "say:Hello there")
    async with talk.say("hi", "one") as response:
        stream_id = response.headers["X-Service-Stream-Id"]
        await all_events(response)
    for reader in (talk, at(other, talk)):

        async def is_forgotten(reader: Talk = reader) -> bool:
            async with resume(reader, stream_id) as again:
                return again.status == 404

        await until(is_forgotten)


async def test_copied_log_expires_when_its_stream_can_no_longer_be_read(
    talk: Talk, strategy, server: Server, other: Server, vendor: Vendor
) -> None:
    valkey = server.services.valkey
    await limits(server, stream_s=300, readable_s=50)
    await strategy("one", "slow:Once upon a time")
    response = await talk.say("story", "one")
    stream_id = response.headers["X-Service-Stream-Id"]
    key = valkey.key(f"default:{talk.uid}", "log", stream_id)
    async with resume(at(other, talk), stream_id) as again:
        async for event in events(again):
            if event.name == "assistant_output_chunk":
                break
        assert await valkey.client.pttl(key) > 300_000
        vendor.release.set()
        await all_events(again)

    async def expires() -> bool:
        return 0 < await valkey.client.pttl(key) <= 50_000

    await until(expires)  # The expiry is set after the last event.


async def test_log_that_is_copied_after_its_end_expires_after_the_remaining_time(
    talk: Talk, strategy, server: Server
) -> None:
    valkey = server.services.valkey
    await limits(server, readable_s=50)
    await strategy("one", "say:Hello there")
    async with talk.say("hi", "one") as response:
        stream_id = response.headers["X-Service-Stream-Id"]
        await all_events(response)
    await server.services.supervisor.idle()
    await asyncio.sleep(0.5)  # Part of `readable_s`.
    await server.services.supervisor.replicate_finished()
    assert 0 < await valkey.client.pttl(valkey.key(f"default:{talk.uid}", "log", stream_id)) <= 49_500


async def test_reader_elsewhere_gets_an_error_where_the_copy_lacks_events(
    talk: Talk, strategy, server: Server, other: Server
) -> None:
    """A process of an earlier version goes on with a copy whose last events Valkey has lost."""
    client = server.services.valkey.client
    await strategy("one", "paced:40")
    async with talk.say("hi", "one") as response:
        stream_id = response.headers["X-Service-Stream-Id"]
        async with resume(at(other, talk), stream_id) as again:  # From now on there is a copy.
            seen = [event for event in await all_events(again) if event.id is not None]
    key = server.services.valkey.key(f"default:{talk.uid}", "log", stream_id)
    lost, before = await client.xrevrange(key, count=2, max=f"{seen[-1].id - 1}-0")
    await client.xdel(key, lost[0])
    last = int(before[0].partition(b"-")[0])

    async with resume(at(other, talk), stream_id) as again:
        read = [event for event in await all_events(again) if event.name != "ping"]
    assert read[:-1] == seen[:last]
    assert (read[-1].id, read[-1].name) == (None, "error")
    assert read[-1].content["error"]["error_type"] == "item_not_found"


async def test_reader_of_events_that_were_dropped_gets_an_error(
    talk: Talk, strategy, server: Server, other: Server
) -> None:
    await limits(server, log_bytes=65_536)
    await strategy("one", "paced:700")
    response = await talk.say("hi", "one")
    stream_id = response.headers["X-Service-Stream-Id"]
    seen = await all_events(response)
    assert seen[-1].name == "end"
    for reader in (talk, at(other, talk)):
        async with resume(reader, stream_id, 2) as again:
            assert again.status == 410
            assert (await again.json())["error"]["error_type"] == "item_not_found"
        async with resume(reader, stream_id, seen[-1].id - 3) as again:
            assert await all_events(again) == seen[-3:]
