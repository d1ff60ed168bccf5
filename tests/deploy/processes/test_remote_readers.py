"""Readers in a process that stops or is replaced, of streams in another process."""

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from aiohttp import ClientSession

from app.settings import Settings
from streams.tasks import background
from tests.app.ai.conftest import Talk, strategy, talk, vendor
from tests.deploy.callers import Caller
from tests.deploy.commands import Command
from tests.deploy.serving import serving
from tests.peers.sse_client import all_events
from tests.peers.vendor import Vendor
from tests.running.servers import Server, listening_socket
from tests.waiting import until

__all__ = ["strategy", "talk", "vendor"]


@asynccontextmanager
async def another_process(settings: Settings, drain_timeout_s: int) -> AsyncIterator[tuple[str, Command]]:
    """Run a server in another process. Yield its URL and the process."""
    with listening_socket() as held:
        port = held.getsockname()[1]
    at = replace(settings, port=port, public_url=f"http://127.0.0.1:{port}")
    async with serving(at, PARLEY_PROCESSES="1", PARLEY_DRAIN_TIMEOUT_S=str(drain_timeout_s)) as process:
        await process.event("server.listening")
        yield at.public_url, process


@asynccontextmanager
async def read_elsewhere(talk: Talk, url: str, http: ClientSession) -> AsyncIterator[tuple[Caller, Any]]:
    """Run a reader at `url` of a stream of `talk`'s server. Yield the response and the reading task."""
    async with talk.say("story", "slow") as said:
        reader = Caller(http, url, {"X-Service-Session-Token": talk.token})
        reader.stream_id = said.headers["X-Service-Stream-Id"]
        async with background(reader.read(await reader.resume())) as reading:
            await until(lambda: reader.text == "Once upon a time")
            yield reader, reading


async def test_readers_in_a_draining_process_must_resume_elsewhere(
    settings: Settings, server: Server, talk: Talk, strategy: Any, vendor: Vendor
) -> None:
    await strategy("slow", "slow:Once upon a time")
    async with (
        another_process(settings, drain_timeout_s=1) as (url, process),
        ClientSession() as http,
        read_elsewhere(talk, url, http) as (reader, reading),
    ):
        process.process.send_signal(signal.SIGTERM)
        assert await process.end() == 0
        await reading
        assert not reader.cut
        last = reader.seen[-1]
        assert (last.id, last.name) == (None, "error")
        assert last.content["error"]["extra"]["retryable"] is True
        vendor.release.set()
        reader.url = server.url
        async with reader.resume() as answer:
            rest = await all_events(answer)
    assert rest[-1].name == "end"
    ids = [event.id for event in reader.seen + rest if event.id is not None]
    assert ids == list(range(1, len(ids) + 1))


@pytest.mark.soak
@pytest.mark.timeout(120)
async def test_reader_in_a_process_that_drains_gets_the_end_of_a_stream_that_ends_in_time(
    settings: Settings, talk: Talk, strategy: Any, vendor: Vendor
) -> None:
    await strategy("slow", "slow:Once upon a time")
    async with (
        another_process(settings, drain_timeout_s=60) as (url, process),
        ClientSession() as http,
        read_elsewhere(talk, url, http) as (reader, reading),
    ):
        process.process.send_signal(signal.SIGTERM)
        await process.event("server.draining")
        # Without waiting for readers, the process would end the response within 12 s.
        done, _ = await asyncio.wait([reading], timeout=14)
        assert not done
        vendor.release.set()
        await reading
        assert await process.end() == 0
    assert not reader.cut
    assert reader.seen[-1].name == "end"
