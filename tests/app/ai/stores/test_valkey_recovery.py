"""After an outage of Valkey or the loss of its data, every process finds the streams of the others."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from redis.asyncio import Redis

from app.settings import Settings
from streams.wire.ids import new_id
from tests.app.ai.conftest import Talk
from tests.app.ai.readers.two_servers import at
from tests.app.valkey_proxy import ValkeyProxy, settings, valkey_proxy
from tests.peers.sse_client import all_events, events
from tests.peers.vendor import Vendor
from tests.running.servers import Server, Stores
from tests.waiting import until

__all__ = ["settings", "valkey_proxy"]


@pytest.fixture
async def strategies(strategy) -> None:
    await strategy("slow", "slow:Once upon a time")


@pytest.fixture
def empty_valkey(stores: Stores, settings: Settings) -> Callable[[], Awaitable[None]]:
    """A function that deletes all keys of this deployment, even while the proxy is stopped."""

    async def empty() -> None:
        async with Redis.from_url(stores.redis_url) as client:
            names = [name async for name in client.scan_iter(f"{settings.redis_prefix}*", count=10_000)]
            assert names
            await client.delete(*names)

    return empty


def resume(talk: Talk, stream_id: str, after: int = 0) -> Any:
    return talk.get(f"/bp/ai/stream/{stream_id}", headers={"Last-Event-ID": str(after)})


async def read_when_found(talk: Talk, stream_id: str) -> list[Any]:
    """Return all events of the stream. Until they can be read, each response must be retryable."""
    seen: list[Any] = []

    async def is_found() -> bool:
        async with resume(talk, stream_id) as response:
            if response.status != 200:
                assert (response.status, response.headers["Retry-After"]) == (503, "1")
                return False
            seen[:] = await all_events(response)
        if seen[-1].id is None:  # The processes do not receive the messages of each other yet.
            assert seen[-1].content["error"]["extra"]["retryable"] is True
        return seen[-1].id is not None

    await until(is_found, every_s=0.05)
    return seen


async def status_of(response: Any) -> tuple[int, str | None]:
    async with response as answer:
        return answer.status, answer.headers.get("Retry-After")


async def until_first_words(response: Any) -> None:
    async for event in events(response):
        if event.name == "assistant_output_chunk":
            return


@asynccontextmanager
async def running_stream(talk: Talk) -> AsyncIterator[tuple[Any, str]]:
    """Return the response and the id of a stream that has sent its first words and waits for `vendor.release`."""
    async with talk.say("story", "slow") as running:
        assert running.status == 200
        await until_first_words(running)
        yield running, running.headers["X-Service-Stream-Id"]


@pytest.mark.usefixtures("strategies")
async def test_stream_that_began_without_valkey_is_found_on_other_servers_once_valkey_is_available(
    talk: Talk, other: Server, vendor: Vendor, valkey_proxy: ValkeyProxy
) -> None:
    await valkey_proxy.stop()
    async with running_stream(talk) as (_, stream_id):
        await valkey_proxy.start()
        vendor.release.set()
        seen = await read_when_found(at(other, talk), stream_id)
    assert seen[-1].name == "end"


@pytest.mark.parametrize("ended", [False, True])
@pytest.mark.usefixtures("strategies")
async def test_stream_is_found_on_other_servers_after_valkey_lost_its_data(
    talk: Talk, other: Server, vendor: Vendor, valkey_proxy: ValkeyProxy, empty_valkey, *, ended: bool
) -> None:
    async with running_stream(talk) as (running, stream_id):
        if ended:
            vendor.release.set()
            await all_events(running)
        await valkey_proxy.stop()
        await empty_valkey()
        await valkey_proxy.start()
        vendor.release.set()
        seen = await read_when_found(at(other, talk), stream_id)
    assert seen[-1].name == "end"


@pytest.mark.parametrize("ended", [False, True])
@pytest.mark.usefixtures("strategies")
async def test_interrupted_stream_is_read_completely_on_another_server_after_valkey_lost_its_data(
    talk: Talk, other: Server, vendor: Vendor, server: Server, empty_valkey, *, ended: bool
) -> None:
    async with running_stream(talk) as (running, stream_id):
        running.close()
    async with resume(at(other, talk), stream_id) as again:
        await until_first_words(again)
        if ended:
            vendor.release.set()
            await all_events(again)
            await server.services.supervisor.idle()
    await empty_valkey()
    await server.services.heartbeat.beat()
    vendor.release.set()
    seen = await read_when_found(at(other, talk), stream_id)
    assert [event.id for event in seen] == list(range(1, len(seen) + 1))
    assert seen[-1].name == "end"


async def test_unknown_stream_is_unavailable_until_the_other_processes_have_registered_theirs(
    talk: Talk, server: Server, valkey_proxy: ValkeyProxy
) -> None:
    path = f"/bp/ai/stream/{new_id()}"
    assert await status_of(talk.get(path)) == (404, None)
    await valkey_proxy.stop()
    await valkey_proxy.start()
    assert await status_of(talk.get(path)) == (503, "1")
    assert await status_of(talk.delete(path)) == (503, "1")
    assert await status_of(talk.get("/bp/ai/stream/none")) == (404, None)
    server.services.heartbeat._void_after_s = 0.5

    async def is_unknown() -> bool:
        return (await status_of(talk.get(path)))[0] == 404

    await until(is_unknown, every_s=0.05)


async def test_unknown_stream_is_unavailable_while_valkey_lacks_a_live_process(
    talk: Talk, other: Server, server: Server, empty_valkey
) -> None:
    path = f"/bp/ai/stream/{new_id()}"
    await empty_valkey()
    assert await status_of(talk.get(path)) == (503, "1")
    for process in (server, other):
        await process.services.heartbeat.beat()
        process.services.heartbeat._void_after_s = 0
    assert await status_of(talk.get(path)) == (404, None)
