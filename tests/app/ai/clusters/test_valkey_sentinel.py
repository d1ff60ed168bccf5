"""Streams with servers that Sentinel watches."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from app.settings import Settings
from tests.app.ai.clusters.asked import KEY, send, until_answered
from tests.app.ai.conftest import Talk
from tests.app.ai.readers.resumed import text_of
from tests.app.ai.readers.two_servers import at, knows
from tests.peers.sse_client import all_events
from tests.peers.vendor import Vendor
from tests.running.sentinels import Watched, valkey_with_sentinels
from tests.running.servers import Server


@pytest.fixture
async def watched(tmp_path: Path) -> AsyncIterator[Watched]:
    async with valkey_with_sentinels(tmp_path / "sentinel") as running:
        yield running


@pytest.fixture
def settings(settings: Settings, watched: Watched) -> Settings:
    return replace(settings, redis_url=watched.url)


async def test_streams_survive_a_failed_primary_and_their_requests_are_not_answered_twice(
    talk: Talk, strategy, *, other: Server, vendor: Vendor, watched: Watched
) -> None:
    await strategy("slow", "slow:Once upon a time")
    await knows(other, "slow")
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(await send(talk, headers=KEY))
        responses = [first]
        await watched.kill(watched.primary)
        for asker in (talk, at(other, talk)):
            again = await stack.enter_async_context(await until_answered(asker, KEY))
            assert again.headers["X-Service-Stream-Id"] == first.headers["X-Service-Stream-Id"]
            responses.append(again)
        vendor.release.set()
        for response in responses:
            assert text_of(await all_events(response)) == "Once upon a time"
    assert len(vendor.calls) == 1
    assert (await talk.turn("And then?", "slow"))[-1].name == "end"
