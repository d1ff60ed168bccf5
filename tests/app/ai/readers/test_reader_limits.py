"""Limits on the concurrent readers of a user and of a process. A stalled reader is disconnected."""

import asyncio
import gc
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import ClientResponse

from storage.operators.audit import COMMAND
from streams.wire.ids import new_id
from tests.app.ai.conftest import Talk
from tests.app.ai.readers.resumed import resume
from tests.peers.sse_client import all_events
from tests.peers.vendor import Vendor
from tests.running.servers import Server
from tests.waiting import until

REFUSALS = {
    "readers_per_user": (429, "api_rate_limit", "readers of a user at once", "1"),
    "readers_per_process": (503, "backend unavailable", "the server is full", "2"),
}


@pytest.fixture
def server(shared_server: Server) -> Server:
    return shared_server


async def limited(server: Server, **fields: Any) -> None:
    value = {"streams_per_user": 2, "streams_per_process": 2, **fields}
    await server.services.configs.put("default", "limits", "default", value, author="test", origin=COMMAND)


async def refused(response: ClientResponse, limit: str) -> None:
    status, error_type, message, retry_after = REFUSALS[limit]
    error = (await response.json())["error"]
    assert (response.status, response.headers["Retry-After"]) == (status, retry_after), error
    assert error["error_type"] == error_type
    assert message in error["message"]


@pytest.mark.parametrize("limit", REFUSALS)
async def test_a_reader_over_the_limit_is_refused_until_another_leaves(
    talk: Talk, strategy, server: Server, vendor: Vendor, limit: str
) -> None:
    await limited(server, **{limit: 2})
    await strategy("slow", "slow:For both of you")
    first = await talk.say("hi", "slow")
    stream_id = first.headers["X-Service-Stream-Id"]
    await vendor.begun.wait()
    second = await resume(talk, stream_id)
    async with resume(talk, stream_id) as third:
        await refused(third, limit)
    async with talk.say("hi", "slow") as another:
        await refused(another, limit)
    second.close()
    async with asyncio.timeout(10):
        while (third := await resume(talk, stream_id)).status != 200:
            await third.release()
    vendor.release.set()
    assert (await all_events(third))[-1].name == "end"
    assert (await all_events(first))[-1].name == "end"


async def test_a_refused_repeat_of_a_request_leaves_no_coroutine(
    talk: Talk, strategy, server: Server, vendor: Vendor
) -> None:
    await limited(server, streams_per_user=1, readers_per_user=1)
    await strategy("slow", "slow:For you")
    talk.headers = {"Idempotency-Key": new_id()}
    first = await talk.say("hi", "slow")
    await vendor.begun.wait()
    async with talk.say("hi", "slow") as repeated:
        await refused(repeated, "readers_per_user")
    gc.collect()  # A coroutine that was never awaited is a warning, which fails the test.
    vendor.release.set()
    assert (await all_events(first))[-1].name == "end"


async def test_the_reader_limit_applies_to_each_user(talk: Talk, strategy, server: Server, vendor: Vendor) -> None:
    await limited(server, readers_per_user=2, streams_per_process=10)
    await strategy("slow", "slow:For all of you")
    other = Talk(server, *(await server.login()))
    responses = [await who.say("hi", "slow") for who in (talk, talk, other, other)]
    assert [response.status for response in responses] == [200] * 4
    vendor.release.set()
    for response in responses:
        assert (await all_events(response))[-1].name == "end"


@asynccontextmanager
async def stalled(talk: Talk, stream_id: str) -> AsyncIterator[None]:
    """A client that resumes a stream and reads only the status. Its receive buffer is minimal."""
    loop = asyncio.get_running_loop()
    with socket.socket() as client:
        client.setblocking(False)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        await loop.sock_connect(client, ("127.0.0.1", talk.server.services.settings.port))
        head = f"GET /bp/ai/stream/{stream_id} HTTP/1.1\r\nHost: parley\r\nX-Service-Session-Token: {talk.token}"
        await loop.sock_sendall(client, f"{head}\r\n\r\n".encode())
        assert await loop.sock_recv(client, 12) == b"HTTP/1.1 200"
        yield


@pytest.mark.parametrize("model", ["wide:1023", "many:60000"])
async def test_a_reader_that_stalls_on_a_finished_stream_is_cut_after_the_send_timeout(
    talk: Talk, strategy, server: Server, model: str
) -> None:
    await limited(server, streams_per_user=1, readers_per_user=1, send_timeout_s=2)
    await strategy("one", model)
    async with talk.say("hi", "one") as response:
        stream_id = response.headers["X-Service-Stream-Id"]
        await response.read()
    async with asyncio.timeout(20), stalled(talk, stream_id):
        began = time.monotonic()
        await until(lambda: is_admitted(talk, stream_id), every_s=0.05)
        assert time.monotonic() - began > 1


async def is_admitted(talk: Talk, stream_id: str) -> bool:
    """Return whether a further reader is admitted. It reads nothing of the body."""
    response = await resume(talk, stream_id)
    response.close()
    assert response.status in {200, 429}
    return response.status == 200


async def test_sixteen_readers_get_the_same_events_and_a_seventeenth_is_refused(
    talk: Talk, strategy, vendor: Vendor
) -> None:
    await strategy("one", "slow:For all of you")
    response = await talk.say("hi", "one")
    stream_id = response.headers["X-Service-Stream-Id"]
    await vendor.begun.wait()
    readers = [await resume(talk, stream_id) for _ in range(15)]
    async with resume(talk, stream_id) as refused:
        assert refused.status == 429
        assert refused.headers["Retry-After"]
    vendor.release.set()
    first, *others = await asyncio.gather(*(all_events(reader) for reader in [response, *readers]))
    assert first[-1].name == "end"
    assert all(seen == first for seen in others)
