"""A stream can be resumed at any event, on any server, without a lost or repeated event."""

import asyncio
import random

import pytest
from aiohttp import ClientResponse

from app.settings import Settings
from storage.conversations.admission import Admissions, Slot
from storage.processes.heartbeats import Heartbeat
from streams.wire.ids import new_id
from tests.app.ai.conftest import Talk
from tests.app.ai.readers.resumed import limits, resume, text_of
from tests.app.ai.readers.two_servers import at
from tests.peers.sse_client import SeenEvent, all_events, events
from tests.peers.vendor import Vendor
from tests.running.another_server import another_server
from tests.running.servers import Server
from tests.waiting import until


@pytest.fixture
def server(shared_server: Server) -> Server:
    return shared_server


@pytest.fixture
def settings(server: Server) -> Settings:
    return server.services.settings


async def read_some(response: ClientResponse, count: int) -> list[SeenEvent]:
    """Read `count` events, then disconnect. The words of an answer may come in one event: only three are sure."""
    seen: list[SeenEvent] = []
    async for event in events(response):
        seen.append(event)
        if len(seen) == count:
            break
    response.close()
    return seen


def ids(seen: list[SeenEvent]) -> list[int | None]:
    return [event.id for event in seen if event.name != "ping"]


@pytest.mark.parametrize("elsewhere", [False, True])
async def test_an_answer_read_in_two_parts_is_complete(
    talk: Talk, strategy, server: Server, other: Server, vendor: Vendor, *, elsewhere: bool
) -> None:
    await strategy("one", "slow:Once upon a time there was a king")
    reader = at(other, talk) if elsewhere else talk
    response = await talk.say("story", "one")
    stream_id = response.headers["X-Service-Stream-Id"]
    first = await read_some(response, 3)
    async with resume(reader, stream_id, 3) as again:
        assert again.headers["X-Service-Stream-Id"] == stream_id
        assert again.headers["X-Service-Conversation-Id"] == response.headers["X-Service-Conversation-Id"]
        vendor.release.set()
        rest = await all_events(again)
    assert rest[-1].name == "end"
    assert text_of(first + rest) == "Once upon a time there was a king"
    assert ids(first + rest) == list(range(1, len(first + rest) + 1))


async def read_with_breaks(reader: Talk, response: ClientResponse, stream_id: str, rng: random.Random) -> list:
    """Read a stream to its end, with some disconnects."""
    seen = await read_some(response, rng.randint(1, 8))
    while seen[-1].name not in {"end", "error"}:
        async with resume(reader, stream_id, seen[-1].id) as again:
            if again.status == 204:
                break
            seen += await read_some(again, rng.randint(1, 12))
    return seen


async def _resume_often(server: Server, other: Server, *, streams: int) -> None:
    users = [Talk(server, *(await server.login())) for _ in range(min(streams, 20))]
    left = iter(range(streams))

    async def one_user(talk: Talk) -> None:
        for nth in left:
            rng = random.Random(nth)  # noqa: S311 - the same every time
            response = await talk.say("count", "many")
            stream_id = response.headers["X-Service-Stream-Id"]
            seen = await read_with_breaks(at(other, talk), response, stream_id, rng)
            async with resume(talk, stream_id) as whole:
                assert [(event.id, event.content) for event in await all_events(whole)] == [
                    (event.id, event.content) for event in seen
                ]
            assert ids(seen) == list(range(1, len(seen) + 1))

    await asyncio.gather(*(one_user(talk) for talk in users))


async def test_twenty_streams_with_repeated_breaks_are_read_completely_on_another_server(
    server: Server, other: Server, strategy
) -> None:
    await strategy("many", "paced:60")
    await _resume_often(server, other, streams=20)


@pytest.mark.soak
async def test_a_thousand_streams_are_read_completely_on_another_server(
    server: Server, other: Server, strategy
) -> None:
    await strategy("many", "paced:200")
    await limits(server, rates={"signup": {"count": 10**6, "per_s": 1}})
    await _resume_often(server, other, streams=1_000)


async def test_events_larger_than_a_piece_are_read_on_every_server_from_any_position(
    talk: Talk, strategy, server: Server, other: Server
) -> None:
    await strategy("one", "wide:700")
    async with talk.say("hi", "one") as response:
        stream_id = response.headers["X-Service-Stream-Id"]
        seen = (await response.read()).split(b"\n\n")
    last_id = len(seen) - 1
    assert max(map(len, seen)) > 700_000
    for reader in (talk, at(other, talk)):
        for after in (0, 1, last_id // 2, last_id - 3, last_id - 2, last_id - 1):
            async with resume(reader, stream_id, after) as again:
                assert again.status == 200
                assert (await again.read()).split(b"\n\n") == seen[after:]


async def test_many_readers_at_once_on_another_server_see_all_events(
    talk: Talk, strategy, server: Server, other: Server
) -> None:
    await strategy("one", "wide:1023")
    async with talk.say("hi", "one") as response:
        stream_id = response.headers["X-Service-Stream-Id"]
        seen = await response.read()

    async def read() -> bytes:
        async with resume(at(other, talk), stream_id) as again:
            return await again.read()

    for body in await asyncio.gather(*(read() for _ in range(15))):
        assert body == seen


@pytest.mark.parametrize("after", ["", " "])
async def test_an_empty_position_is_the_start(talk: Talk, strategy, after: str) -> None:
    await strategy("one", "say:Hello there")
    async with talk.say("hi", "one") as response:
        seen = await response.read()
    async with resume(talk, response.headers["X-Service-Stream-Id"], after) as again:
        assert (again.status, await again.read()) == (200, seen)


@pytest.mark.parametrize("after", ["x", "-1", "1.5", "99999999999999999999"])
async def test_malformed_position_is_refused(talk: Talk, strategy, after: str) -> None:
    await strategy("one", "say:Hello there")
    async with talk.say("hi", "one") as response:
        await all_events(response)
    async with resume(talk, response.headers["X-Service-Stream-Id"], after) as again:
        assert again.status == 400
        assert (await again.json())["error"]["message"].startswith("invalid_parameter: Last-Event-ID ")


async def test_only_its_owner_reads_or_cancels_a_stream(
    talk: Talk, strategy, server: Server, other: Server, vendor: Vendor
) -> None:
    await strategy("one", "slow:Mine alone")
    response = await talk.say("hi", "one")
    stream_id = response.headers["X-Service-Stream-Id"]
    stranger = Talk(server, *(await server.login()))
    for reader in (stranger, at(other, stranger)):
        for found in (resume(reader, stream_id), reader.delete(f"/bp/ai/stream/{stream_id}")):
            async with found as answer:
                assert answer.status == 404
                assert (await answer.json())["error"]["error_type"] == "item_not_found"
    async with resume(talk, new_id()) as answer:
        assert answer.status == 404
    async with resume(talk, "nonsense") as answer:
        assert answer.status == 404
    vendor.release.set()
    assert (await all_events(response))[-1].name == "end"


@pytest.mark.parametrize("elsewhere", [False, True])
async def test_streams_without_a_reader_are_cancelled_unless_they_are_resumed(
    talk: Talk, strategy, server: Server, other: Server, vendor: Vendor, *, elsewhere: bool
) -> None:
    await limits(server, resume_grace_s=0.6)
    await strategy("one", "slow:Half of it")
    response = await talk.say("hi", "one")
    talk.remember(response)
    await read_some(response, 3)
    reader = at(other, talk) if elsewhere else talk
    stream_id = response.headers["X-Service-Stream-Id"]
    again = await resume(reader, stream_id, 3)
    abandoned = Talk(server, *(await server.login()))
    (await abandoned.say("hi", "one")).close()  # Without a reader for `resume_grace_s`, from now on.
    await until(lambda: len(server.services.supervisor.live()) == 1)
    assert server.services.supervisor.live()[0].ctx.owner.user_id == talk.uid
    again.close()
    await asyncio.wait_for(server.services.supervisor.idle(), 25)
    record = (await talk.history())["conversation_records"][0]
    assert record["status"] == "incomplete"
    assert vendor.closed
    async with resume(reader, stream_id, 4) as ended:
        seen = await all_events(ended)
    assert seen[-1].content["error"]["error_type"] == "backend_unavailable"
    assert seen[-1].content["error"]["extra"]["record_id"] == 1


async def test_stream_of_a_dead_process_ends_with_an_error_without_an_id(talk: Talk, server: Server) -> None:
    services = server.services
    gone = Heartbeat(services.valkey, services.database, "gone", dict)
    slot = Slot("default", talk.uid, new_id(), new_id())
    assert await Admissions(services.valkey, gone).acquire(slot, limit=4, lifetime_s=60) is None
    async with asyncio.timeout(4), resume(talk, slot.stream_id, 7) as answer:
        seen = await all_events(answer)
    assert [(event.id, event.name) for event in seen] == [(None, "error")]
    assert seen[0].content["error"]["error_type"] == "backend_unavailable"
    assert seen[0].content["error"]["extra"]["retryable"] is True


async def test_streams_of_a_drained_server_can_be_read_on_another_server(
    talk: Talk, strategy, server: Server, settings: Settings, vendor: Vendor
) -> None:
    await strategy("quick", "say:All of it")
    await strategy("slow", "slow:Half of it")
    async with another_server(settings) as going:
        leaving = at(going, talk)
        async with leaving.say("hi", "quick") as response:
            finished, whole = response.headers["X-Service-Stream-Id"], await all_events(response)
        response = await leaving.say("hi", "slow")
        cut = response.headers["X-Service-Stream-Id"]
        first = await read_some(response, 3)
        supervisor = going.services.supervisor
        await supervisor.drain(0.1)
        await supervisor.replicate_finished()
    async with resume(talk, finished, 2) as again:
        assert await all_events(again) == whole[2:]
    async with resume(talk, cut, 3) as again:
        rest = await all_events(again)
    assert ids(first + rest) == list(range(1, len(first + rest) + 1))
    assert rest[-1].name == "error"
    assert rest[-1].content["error"]["extra"]["retryable"] is True
    assert vendor.closed
