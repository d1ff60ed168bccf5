"""The admin API lists running streams."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from storage.operators.audit import COMMAND
from tests.app.ai.conftest import Talk
from tests.peers.sse_client import all_events, events
from tests.running.servers import ADMIN_TOKEN, Server


@pytest.fixture
def server(shared_server: Server) -> Server:
    return shared_server


async def live(server: Server, *, status: int = 200, **query: Any) -> Any:
    headers = {"Authorization": f"Bearer {ADMIN_TOKEN}"}
    async with server.http.get(f"{server.url}/admin/api/streams", headers=headers, params=query) as response:
        assert response.status == status, await response.text()
        return await response.json()


@asynccontextmanager
async def answering(talk: Talk, strategy: str) -> AsyncIterator[tuple[str, int]]:
    """Run a stream that has sent its first words. Yield its id and the number of its events so far."""
    async with talk.say("Hello", strategy, conversation_id="") as response:
        count, said = 0, ""
        seen = events(response)
        while not said.endswith("upon"):
            event = await anext(seen)
            said += event.content["text"] if event.name == "assistant_output_chunk" else ""
            count += 1
        yield response.headers["X-Service-Stream-Id"], count


async def test_streams_are_listed_only_with_the_operators_token(server: Server, talk: Talk) -> None:
    for headers in ({}, {"Authorization": "Bearer x"}, {"X-Service-Session-Token": talk.token}):
        async with server.http.get(f"{server.url}/admin/api/streams", headers=headers) as response:
            assert response.status == 401
            assert (await response.json())["error"]["error_type"] == "auth_failed"


async def test_an_idle_server_lists_no_streams(server: Server) -> None:
    assert await live(server) == {
        "streams": [],
        "total": 0,
        "processes": [server.services.heartbeat.process],
        "silent": [],
        "complete": True,
    }


async def test_running_streams_are_listed(talk: Talk, strategy, server: Server, vendor) -> None:
    await strategy("slow", "slow:Once upon")
    talk.headers = {"X-Request-Id": "a-request"}
    async with answering(talk, "slow") as (stream_id, count):
        answer = await live(server)
        (row,) = answer["streams"]
        assert answer["total"] == 1
        assert 0 <= row.pop("age_ms") < 60_000
        assert row.pop("bytes") > count * 20
        assert row == {
            "stream_id": stream_id,
            "kind": "conversation",
            "app": "default",
            "user_id": talk.uid,
            "process": server.services.heartbeat.process,
            "strategy": "slow",
            "vendor": "vendor_b_llm",
            "model": "slow:Once upon",
            "state": "answering",
            "readers": 1,
            "events": count,
            "lag_bytes": 0,
            "request_id": "a-request",
        }
        vendor.release.set()
    await server.services.supervisor.idle()
    assert (await live(server))["total"] == 0


async def test_the_stream_hears_until_its_input_is_complete(talk: Talk, strategy, server: Server) -> None:
    await strategy("good", "say:Hello")
    go_on = asyncio.Event()

    async def body() -> AsyncIterator[bytes]:
        yield talk.params("good") + b"Hel"
        await go_on.wait()
        yield b"lo"

    async with talk.post("/bp/ai/conversation", data=body()) as response:
        (row,) = (await live(server))["streams"]
        assert (row["state"], row["events"]) == ("hearing", 1)
        go_on.set()
        assert (await all_events(response))[-1].name == "end"


async def test_disconnected_readers_are_not_counted(talk: Talk, strategy, server: Server, vendor) -> None:
    await strategy("slow", "slow:Once upon")
    async with answering(talk, "slow"):
        assert (await live(server))["streams"][0]["readers"] == 1
    async with asyncio.timeout(10):
        # The server notices a disconnected reader when it writes to it.
        vendor.release.set()
        while any(row["readers"] for row in (await live(server))["streams"]):
            pass
    await server.services.supervisor.idle()


async def test_the_oldest_come_first_and_all_are_counted(talk: Talk, strategy, server: Server, vendor) -> None:
    await strategy("slow", "slow:Once upon")
    async with answering(talk, "slow") as (first, _), answering(talk, "slow") as (second, _):
        answer = await live(server)
        assert [row["stream_id"] for row in answer["streams"]] == [first, second]
        assert answer["streams"][0]["age_ms"] >= answer["streams"][1]["age_ms"]
        answer = await live(server, size=1)
        assert [row["stream_id"] for row in answer["streams"]] == [first]
        assert answer["total"] == 2
        vendor.release.set()
    await server.services.supervisor.idle()


async def test_streams_are_chosen_by_app_and_kind(talk: Talk, strategy, server: Server, vendor) -> None:
    await strategy("slow", "slow:Once upon")
    await server.services.configs.put(
        "other", "apps", "default", {"title": "Other", "currency": "USD"}, author="test", origin=COMMAND
    )
    async with answering(talk, "slow"):
        assert (await live(server, app="default", kind="conversation"))["total"] == 1
        assert (await live(server, app="other"))["total"] == 0
        assert (await live(server, kind="tts"))["total"] == 0
        vendor.release.set()
    await server.services.supervisor.idle()


@pytest.mark.parametrize(
    ("query", "status", "message"),
    [
        ({"app": "unknown"}, 404, "item_not_found: app unknown does not exist"),
        ({"size": "0"}, 400, "invalid_parameter: size must be at least 1"),
        ({"size": "1001"}, 400, "invalid_parameter: size must be at most 1000"),
        ({"size": "many"}, 400, "invalid_parameter: size must be an integer"),
        ({"kind": "song"}, 400, "invalid_parameter: kind must be one of 'conversation', 'tts' or 'pronunciation'"),
    ],
)
async def test_invalid_queries_are_refused_with_their_field(server: Server, query, status, message) -> None:
    answer = await live(server, status=status, **query)
    assert answer["error"]["message"] == message
