"""A refused stream leaves nothing in Valkey. An admitted one starts immediately."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest

from storage.operators.audit import COMMAND
from tests.app.ai.conftest import Talk
from tests.peers.sse_client import all_events, named
from tests.peers.vendor import Vendor
from tests.running.servers import Server

KEY = {"Idempotency-Key": "7c20"}
REFUSALS = {
    "streams_per_app": (429, "api_rate_limit", "at most 1 streams of the app at once", "1"),
    "streams_per_process": (503, "backend unavailable", "the server is full", "2"),
}


@pytest.fixture
def server(shared_server: Server) -> Server:
    return shared_server


async def held_by(talk: Talk) -> set[bytes]:
    """Return the keys of the user in Valkey: streams, turns and idempotency keys."""
    services = talk.server.services
    return set(await services.valkey.client.keys(f"{services.settings.redis_prefix}*{talk.uid}*"))


def question(talk: Talk) -> bytes:
    return talk.params("one") + b"Is there room?"


async def refused(talk: Talk, limit: str, **options: Any) -> None:
    """Send a turn that exceeds `limit`."""
    status, error_type, message, retry_after = REFUSALS[limit]
    async with talk.post("/bp/ai/conversation", data=question(talk), **options) as response:
        error = (await response.json())["error"]
        assert (response.status, response.headers["Retry-After"]) == (status, retry_after), error
    assert error["error_type"] == error_type
    assert message in error["message"]


@asynccontextmanager
async def filled(server: Server, vendor: Vendor, limit: str) -> AsyncIterator[None]:
    """Run the only stream that `limit` allows, for the duration of the block."""
    limits = {limit: 1, "streams_per_user": 1}
    await server.services.configs.put("default", "limits", "default", limits, author="test", origin=COMMAND)
    other = Talk(server, *(await server.login()))
    vendor.begun.clear()
    async with other.say("Stay", "hangs") as response:
        assert response.status == 200
        await vendor.begun.wait()
        yield
        async with other.delete(f"/bp/ai/stream/{response.headers['X-Service-Stream-Id']}") as answer:
            assert answer.status == 200
    await server.services.supervisor.idle()


@pytest.mark.parametrize("limit", REFUSALS)
async def test_refused_streams_hold_no_slot_turn_or_key(
    talk: Talk, strategy, server: Server, vendor: Vendor, limit: str
) -> None:
    await strategy("one", "say:There is")
    await strategy("hangs", "hang")
    await talk.turn("Hello", "one")
    before = await held_by(talk)
    async with filled(server, vendor, limit):
        await refused(talk, limit)
        await refused(talk, limit, headers=KEY)
        assert await held_by(talk) == before
    assert len(vendor.calls) == 2


@pytest.mark.parametrize("limit", REFUSALS)
async def test_a_refused_turn_succeeds_once_there_is_a_free_slot(
    talk: Talk, strategy, server: Server, vendor: Vendor, limit: str
) -> None:
    await strategy("one", "say:There is")
    await strategy("hangs", "hang")
    await talk.turn("Hello", "one")
    async with filled(server, vendor, limit):
        await refused(talk, limit)
    seen = await talk.turn("Is there room?", "one")
    assert seen[-1].name == "end"
    assert seen[-1].content["record_id"] == 2


@pytest.mark.parametrize("limit", REFUSALS)
async def test_a_refused_request_can_be_repeated_with_its_key(
    talk: Talk, strategy, server: Server, vendor: Vendor, limit: str
) -> None:
    await strategy("one", "say:There is")
    await strategy("hangs", "hang")
    async with filled(server, vendor, limit):
        await refused(talk, limit, headers=KEY)
    async with talk.post("/bp/ai/conversation", data=question(talk), headers=KEY) as response:
        seen = await all_events(response)
    assert seen[-1].name == "end"
    assert named(seen, "user_input") == ["Is there room?"]
    assert len(vendor.calls) == 2


async def test_a_complete_turn_is_started_before_its_response(
    talk: Talk, strategy, server: Server, vendor: Vendor
) -> None:
    await strategy("hangs", "hang")
    body = talk.params("hangs") + b"Now"
    url = urlsplit(server.url)
    reader, writer = await asyncio.open_connection(url.hostname, url.port)
    writer.write(
        b"POST /bp/ai/conversation HTTP/1.1\r\nHost: a\r\nX-Service-Session-Token: %b\r\n"
        b"Content-Length: %d\r\n\r\n%b" % (talk.token.encode(), len(body), body)
    )
    async with asyncio.timeout(5):
        head = await reader.readuntil(b"\r\n\r\n")
        chunk = await reader.readexactly(int(await reader.readline(), 16))
        await vendor.begun.wait()
    writer.close()
    await writer.wait_closed()
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    # These words were sent before a reader followed the stream, so they are one chunk.
    assert re.findall(rb"^event: (.+)$", chunk, re.MULTILINE) == [b"start", b"user_input"]
