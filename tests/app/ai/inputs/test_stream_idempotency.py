"""The same request under the same `Idempotency-Key` is one stream, answered and billed once."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from app.settings import Settings
from storage.operators.audit import COMMAND
from tests.app.ai.conftest import Talk
from tests.app.ai.readers.two_servers import at, knows
from tests.peers.sse_client import all_events, events
from tests.peers.vendor import Vendor
from tests.running.servers import Databases, Server, new_server

KEY = {"Idempotency-Key": "5b1f"}
FINGERPRINT = sha256(b"/bp/ai/conversation 5b1f").hexdigest()
"""A part of the name of the key in Valkey."""


@pytest.fixture
def server(shared_server: Server) -> Server:
    return shared_server


@pytest.fixture
def settings(server: Server) -> Settings:
    return server.services.settings


@asynccontextmanager
async def lookups(settings: Settings) -> AsyncIterator[Callable[[], Awaitable[None]]]:
    """Yield a function that waits until Valkey has executed the next command with the key of the requests."""
    async with Redis.from_url(settings.redis_url) as client, client.monitor() as monitor:

        async def next_lookup() -> None:
            async for seen in monitor.listen():  # Other tests use the same Valkey.
                if settings.redis_prefix in seen["command"] and FINGERPRINT in seen["command"]:
                    return

        yield next_lookup


def say(talk: Talk, text: str, *strategies: str, headers: dict[str, str] = KEY, **fields: Any) -> Any:
    return talk.post(
        "/bp/ai/conversation", data=talk.params(*strategies, **fields) + text.encode(), headers=headers
    )


@pytest.mark.parametrize("elsewhere", [False, True])
async def test_repeat_during_the_answer_gets_the_same_stream(
    talk: Talk, strategy, other: Server, vendor: Vendor, *, elsewhere: bool
) -> None:
    await strategy("slow", "slow:Once upon a time")
    await knows(other, "slow")
    first = await say(talk, "story", "slow")
    await vendor.begun.wait()
    again = await say(at(other, talk) if elsewhere else talk, "story", "slow")
    for name in ("X-Service-Stream-Id", "X-Service-Conversation-Id"):
        assert again.headers[name] == first.headers[name]
    vendor.release.set()
    seen, seen_again = await asyncio.gather(all_events(first), all_events(again))
    assert seen[-1].name == "end"
    assert seen == seen_again
    assert len(vendor.calls) == 1


@pytest.mark.parametrize("elsewhere", [False, True])
async def test_repeat_after_the_end_gets_the_same_events(
    talk: Talk, strategy, other: Server, vendor: Vendor, *, elsewhere: bool
) -> None:
    await strategy("one", "say:Once and for all")
    await knows(other, "one")
    async with say(talk, "hi", "one") as response:
        seen = await all_events(response)
    async with say(at(other, talk) if elsewhere else talk, "hi", "one") as again:
        assert await all_events(again) == seen
    assert len(vendor.calls) == 1


async def test_request_whose_answer_was_lost_is_answered_once(talk: Talk, strategy, vendor: Vendor) -> None:
    await strategy("slow", "slow:Once upon a time")
    response = await say(talk, "story", "slow")
    reading = events(response)
    await anext(reading)
    await vendor.begun.wait()
    response.close()
    vendor.release.set()
    async with say(talk, "story", "slow") as again:
        seen = await all_events(again)
    assert [event.id for event in seen] == list(range(1, len(seen) + 1))
    assert seen[-1].name == "end"
    assert len(vendor.calls) == 1


async def test_other_parameters_under_the_same_key_are_refused(talk: Talk, strategy, vendor: Vendor) -> None:
    await strategy("one", "say:Fine")
    await strategy("two", "say:Fine")
    async with say(talk, "hi", "one") as response:
        await all_events(response)
    for request in (say(talk, "hi", "two"), say(talk, "hi", "one", language_code="de")):
        async with request as refused:
            assert refused.status == 409
            assert (await refused.json())["error"]["error_type"] == "invalid_operation"
    assert len(vendor.calls) == 1


async def test_key_of_another_user_or_endpoint_is_another_key(
    talk: Talk, strategy, server: Server, vendor: Vendor
) -> None:
    await strategy("one", "say:Fine")
    stranger = Talk(server, *(await server.login()))
    ids = set()
    for asker in (talk, stranger):
        async with say(asker, "hi", "one") as response:
            await all_events(response)
            ids.add(response.headers["X-Service-Stream-Id"])
    assert len(ids) == 2
    assert len(vendor.calls) == 2


async def test_stream_whose_input_breaks_off_releases_its_key(
    talk: Talk, strategy, server: Server, vendor: Vendor
) -> None:
    await strategy("one", "say:Fine")

    async def half() -> AsyncIterator[bytes]:
        yield talk.params("one")
        yield b"half a"
        await asyncio.Event().wait()

    broken = await talk.post("/bp/ai/conversation", data=half(), headers=KEY)
    broken.close()
    await server.services.supervisor.idle()
    async with say(talk, "hi", "one") as response:
        assert response.headers["X-Service-Stream-Id"] != broken.headers["X-Service-Stream-Id"]
        assert (await all_events(response))[-1].name == "end"
    assert len(vendor.calls) == 1


@pytest.mark.one_valkey
@pytest.mark.parametrize("elsewhere", [False, True])
async def test_repeat_before_the_server_notices_that_the_first_request_broke_off_is_answered(
    talk: Talk, strategy, other: Server, vendor: Vendor, settings: Settings, *, elsewhere: bool
) -> None:
    await strategy("one", "say:Fine")
    await knows(other, "one")
    asker = at(other, talk) if elsewhere else talk

    async def half() -> AsyncIterator[bytes]:
        yield talk.params("one")
        yield b"half a"
        await asyncio.Event().wait()

    broken = await talk.post("/bp/ai/conversation", data=half(), headers=KEY)

    async def ask_again() -> tuple[str, list[Any]]:
        async with say(asker, "hi", "one") as response:
            assert response.status == 200
            return response.headers["X-Service-Stream-Id"], await all_events(response)

    async with asyncio.timeout(10), lookups(settings) as next_lookup, asyncio.TaskGroup() as tasks:
        again = tasks.create_task(ask_again())
        await next_lookup()  # The repeat has found a stream whose input may still arrive.
        broken.close()
    stream_id, seen = again.result()
    assert stream_id != broken.headers["X-Service-Stream-Id"]
    assert seen[-1].name == "end"
    assert len(vendor.calls) == 1


@pytest.mark.one_valkey
@pytest.mark.parametrize("elsewhere", [False, True])
async def test_repeat_during_the_input_gets_the_same_stream(
    talk: Talk, strategy, other: Server, vendor: Vendor, settings: Settings, *, elsewhere: bool
) -> None:
    await strategy("one", "say:Fine")
    await knows(other, "one")
    asker, go_on = at(other, talk) if elsewhere else talk, asyncio.Event()

    async def slowly() -> AsyncIterator[bytes]:
        yield talk.params("one")
        yield b"h"
        await go_on.wait()
        yield b"i"

    first = await talk.post("/bp/ai/conversation", data=slowly(), headers=KEY)

    async def ask_again() -> tuple[str, list[Any]]:
        async with say(asker, "hi", "one") as response:
            return response.headers["X-Service-Stream-Id"], await all_events(response)

    async with asyncio.timeout(10), lookups(settings) as next_lookup, asyncio.TaskGroup() as tasks:
        again = tasks.create_task(ask_again())
        await next_lookup()  # The repeat has found a stream whose input is still arriving.
        go_on.set()
    seen = await all_events(first)
    assert seen[-1].name == "end"
    assert again.result() == (first.headers["X-Service-Stream-Id"], seen)
    assert len(vendor.calls) == 1


@pytest.mark.parametrize("key", ["", "x" * 256, "a b", "é"])
async def test_malformed_key_is_refused(talk: Talk, strategy, key: str) -> None:
    await strategy("one", "say:Fine")
    async with say(talk, "hi", "one", headers={"Idempotency-Key": key}) as refused:
        assert refused.status == 400
        assert "Idempotency-Key" in (await refused.json())["error"]["message"]


async def test_other_input_under_the_same_key_is_ignored(talk: Talk, strategy, vendor: Vendor) -> None:
    await strategy("one", "say:Fine")
    async with say(talk, "hi", "one") as response:
        seen = await all_events(response)
    async with say(talk, "something else", "one") as again:
        assert (again.status, await all_events(again)) == (200, seen)
    (call,) = vendor.calls
    assert call["messages"][-1]["content"] == "hi"


async def test_other_text_to_be_spoken_under_the_same_key_is_refused(
    talk: Talk, server: Server, vendor: Vendor
) -> None:
    account = {"platform": "vendor_b_audio", "base_url": f"{vendor.url}/nowhere", "api_key": "k"}
    await server.services.configs.put("default", "vendor_accounts", "mute", account, author="test", origin=COMMAND)
    await server.services.configs.put(
        "default", "speech", "mute", {"account": "mute"}, author="test", origin=COMMAND
    )
    statuses = []
    for text in ("Hello", "Hello", "Good-bye"):
        body = {"text": text, "strategies": ["mute"]}
        async with talk.post("/bp/ai/audio/tts", json=body, headers=KEY) as response:
            statuses.append(response.status)
            await response.read()
    assert statuses == [200, 200, 409]


class TestSpoken:
    """On a separate server, which has the local engines."""

    @pytest.fixture
    async def server(self, databases: Databases, local_vendors: str, tmp_path: Path) -> AsyncIterator[Server]:
        async with new_server(databases, tmp_path, local_url=local_vendors) as running:
            yield running

    async def test_repeated_speech_request_is_synthesized_once(self, talk: Talk, server: Server) -> None:
        body = {"text": "Twice the same.", "strategies": ["local"]}
        streams = []
        for _ in range(2):
            async with talk.post("/bp/ai/audio/tts", json=body, headers=KEY) as response:
                streams.append((response.headers["X-Service-Stream-Id"], await all_events(response)))
        assert streams[0] == streams[1]
        async with talk.post("/bp/ai/audio/tts", json={**body, "text": "Other."}, headers=KEY) as refused:
            assert refused.status == 409
        async with server.services.database.connection() as conn:
            assert await conn.fetchval("select count(*) from attempts") == 1
