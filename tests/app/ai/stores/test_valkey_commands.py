"""The number of commands that a stream sends to Valkey."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from storage.operators.audit import COMMAND
from streams.tasks import background
from tests.app.ai.conftest import Talk
from tests.running.servers import Server

pytestmark = pytest.mark.one_valkey

AT_ONCE = 50


@asynccontextmanager
async def watched(server: Server) -> AsyncIterator[Counter[str]]:
    """Counts the commands with a key of this server, by name. Commands inside scripts are not counted."""
    seen: Counter[str] = Counter()
    client, prefix = server.services.valkey.client, server.services.settings.redis_prefix
    end = f"{prefix}seen-all"
    ended = asyncio.Event()

    async def listen() -> None:
        async with client.monitor() as monitor:
            begun.set()
            async for line in monitor.listen():
                command = line["command"]
                if end in command:
                    ended.set()
                elif prefix in command and line["client_type"] != "lua":
                    beats = "processes" in command
                    seen["beat" if beats else command.split(" ", 1)[0].upper()] += 1

    begun = asyncio.Event()
    async with background(listen()):
        await begun.wait()
        yield seen
        await client.set(end, b"", ex=1)
        async with asyncio.timeout(10):
            await ended.wait()


async def _cost(server: Server, *, streams: int) -> Counter[str]:
    limits = {"rates": {"signup": {"count": 10**6, "per_s": 1}}}
    await server.services.configs.put("default", "limits", "default", limits, author="test", origin=COMMAND)
    talks = [Talk(server, *(await server.login())) for _ in range(streams)]
    together = asyncio.Semaphore(AT_ONCE)

    async def turn(talk: Talk) -> None:
        async with together:
            seen = await talk.turn("Hello", "good")
        assert seen[-1].name == "end", seen[-1]

    await turn(Talk(server, *(await server.login())))  # Loads the scripts into the cache of a new Valkey.
    async with watched(server) as seen:
        await asyncio.gather(*map(turn, talks))
    return seen


async def test_a_stream_costs_two_scripts_and_the_read_of_its_session(strategy, server: Server) -> None:
    await strategy("good", "say:All is well")
    seen = await _cost(server, streams=20)
    assert (seen.pop("EVALSHA"), seen.pop("GET")) == (40, 20)
    assert seen.pop("SET") == 20  # The session was copied to Valkey when it was first read.
    assert set(seen) <= {"beat"}


@pytest.mark.soak
async def test_a_thousand_streams_cost_two_scripts_each(strategy, server: Server) -> None:
    await strategy("good", "say:All is well")
    seen = await _cost(server, streams=1_000)
    assert seen["EVALSHA"] <= 2_000
    assert seen["GET"] == 1_000
