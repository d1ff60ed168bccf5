"""A reader of a stream in another process gets every event, even if Valkey is unavailable in between."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import ClientResponse

from streams.tasks import background
from tests.app.ai.conftest import Talk
from tests.app.ai.readers.two_servers import at
from tests.app.valkey_proxy import ValkeyProxy, settings, valkey_proxy
from tests.peers.sse_client import SeenEvent, all_events, events
from tests.peers.vendor import Vendor
from tests.running.servers import Server

__all__ = ["settings", "valkey_proxy"]


@dataclass
class Reader:
    """A client that reads one response of a stream."""

    seen: list[SeenEvent] = field(default_factory=list)
    heard: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once the first words have arrived."""

    async def read(self, response: ClientResponse) -> None:
        async for event in events(response):
            self.seen.append(event)
            if event.name == "assistant_output_chunk":
                self.heard.set()


@dataclass
class RunningStream:
    """A stream whose vendor waits after the first words, with a reader in its process and one in another."""

    local: Reader
    remote: Reader
    local_reading: asyncio.Task[None]
    remote_reading: asyncio.Task[None]
    again: Talk
    stream_id: str

    async def rest(self) -> list[SeenEvent]:
        """Return all events of the remote reader. It resumes while its responses end with a retryable error."""
        async with asyncio.timeout(15):
            await self.remote_reading
            seen = [event for event in self.remote.seen if event.name != "ping"]
            while seen[-1].name == "error":
                error = seen.pop()
                assert error.id is None
                assert error.content["error"]["extra"]["retryable"] is True
                await asyncio.sleep(0.1)
                headers = {"Last-Event-ID": str(seen[-1].id)}
                async with self.again.get(f"/bp/ai/stream/{self.stream_id}", headers=headers) as response:
                    if response.status == 200:
                        seen += [event for event in await all_events(response) if event.name != "ping"]
        return seen


@pytest.fixture
async def running(talk: Talk, other: Server, strategy: Any) -> AsyncIterator[RunningStream]:
    await strategy("slow", "slow:Once upon a time", waits={"between_s": 120})
    async with running_stream(talk, other) as begun:
        yield begun


@asynccontextmanager
async def running_stream(talk: Talk, other: Server) -> AsyncIterator[RunningStream]:
    local, remote, again = Reader(), Reader(), at(other, talk)
    async with talk.say("story", "slow") as said, background(local.read(said)) as local_reading:
        await local.heard.wait()
        stream_id = said.headers["X-Service-Stream-Id"]
        async with (
            again.get(f"/bp/ai/stream/{stream_id}") as relayed,
            background(remote.read(relayed)) as remote_reading,
        ):
            await remote.heard.wait()
            yield RunningStream(local, remote, local_reading, remote_reading, again, stream_id)


def assert_whole(seen: list[SeenEvent], running: RunningStream) -> None:
    own = [(event.id, event.name) for event in running.local.seen if event.name != "ping"]
    assert own[-1][1] == "end"
    assert [(event.id, event.name) for event in seen] == own


async def test_reader_elsewhere_gets_the_end_of_a_stream_that_ended_while_valkey_was_paused(
    running: RunningStream, server: Server, vendor: Vendor, valkey_proxy: ValkeyProxy
) -> None:
    valkey_proxy.flowing.clear()
    vendor.release.set()
    async with asyncio.timeout(30):
        await running.local_reading
        await server.services.supervisor.idle()  # The process no longer tries to copy the last events to Valkey.
    assert not running.remote_reading.done()
    valkey_proxy.flowing.set()
    assert_whole(await running.rest(), running)


async def test_reader_elsewhere_continues_after_the_connections_to_valkey_were_lost(
    running: RunningStream, server: Server, vendor: Vendor, valkey_proxy: ValkeyProxy
) -> None:
    await valkey_proxy.stop()
    vendor.release.set()
    async with asyncio.timeout(30):
        await running.local_reading
        await server.services.supervisor.idle()
    assert not running.remote_reading.done()
    await valkey_proxy.start()
    assert_whole(await running.rest(), running)


async def test_reader_elsewhere_gets_events_that_valkey_refused_when_the_stream_ended(
    running: RunningStream, server: Server, vendor: Vendor
) -> None:
    """The processes can exchange messages throughout. Only the copy of the log cannot be written."""
    client = server.services.valkey.client
    [log] = [name async for name in client.scan_iter(f"*log:{running.stream_id}", count=10_000)]
    await client.set(log, "not a log")
    vendor.release.set()
    async with asyncio.timeout(30):
        await running.local_reading
        await server.services.supervisor.idle()
    assert not running.remote_reading.done()
    await client.delete(log)
    assert_whole(await running.rest(), running)


@pytest.mark.soak
@pytest.mark.timeout(180)
@pytest.mark.parametrize("ends_meanwhile", [True, False])
async def test_reader_elsewhere_gets_every_event_although_valkey_is_paused_for_half_a_minute(
    running: RunningStream, vendor: Vendor, valkey_proxy: ValkeyProxy, *, ends_meanwhile: bool
) -> None:
    valkey_proxy.flowing.clear()
    if ends_meanwhile:
        vendor.release.set()
    await asyncio.sleep(30)
    valkey_proxy.flowing.set()
    vendor.release.set()
    await running.local_reading
    assert_whole(await running.rest(), running)


@pytest.mark.soak
@pytest.mark.timeout(180)
async def test_a_remote_reader_must_resume_if_valkey_stays_unavailable(
    running: RunningStream, vendor: Vendor, valkey_proxy: ValkeyProxy
) -> None:
    await valkey_proxy.stop()
    async with asyncio.timeout(90):
        await running.remote_reading
    last = running.remote.seen[-1]
    assert (last.id, last.name) == (None, "error")
    assert last.content["error"]["extra"]["retryable"] is True
    await valkey_proxy.start()
    vendor.release.set()
    assert_whole(await running.rest(), running)
