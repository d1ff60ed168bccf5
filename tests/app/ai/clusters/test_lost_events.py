"""The copy of a stream whose last events are lost with a primary, because its replica lagged behind."""

import asyncio
from contextlib import AsyncExitStack

import pytest
from aiohttp import ClientResponse
from redis.crc import key_slot

from app.settings import Settings
from deploy.valkey_cluster import ValkeyCluster
from tests.app.ai.clusters.lagging import cut_off, take_over
from tests.app.ai.conftest import Talk
from tests.app.ai.readers.dying import (
    SAID,
    another_process,
    ask,
    begun,
    check_told_once,
    dead,
    story,
)
from tests.app.ai.readers.resumed import resume, text_of
from tests.app.ai.readers.two_servers import at, knows
from tests.peers.sse_client import SeenEvent, all_events, events
from tests.running.servers import Server
from tests.waiting import until
from vendors.sandbox.server import Running

TOLD = " ".join(f"word{number}" for number in range(40))
PACE_MS = 100


@pytest.mark.parametrize(("durable", "ended"), [(True, False), (False, True)])
async def test_readers_elsewhere_get_all_events_although_a_replica_lacked_the_last_ones(
    talk: Talk,
    sandbox: Running,
    server: Server,
    *,
    other: Server,
    cluster: ValkeyCluster,
    durable: bool,
    ended: bool,
) -> None:
    await story(server, sandbox, times=0, pace_ms=PACE_MS, durable=durable, text=TOLD)
    await knows(other, "story")
    elsewhere = at(other, talk)
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(ask(talk))
        talk.remember(first)
        stream_id = first.headers["X-Service-Stream-Id"]
        log = server.services.valkey.key(f"default:{talk.uid}", "log", stream_id)
        early = await stack.enter_async_context(resume(elsewhere, stream_id))
        begun = await read(early, count=3)  # From now on there is a copy.
        primary = await cluster.owner_of(key_slot(log.encode()))
        replica = await cut_off(cluster, primary)
        seen = await read(first, count=5)
        if ended:
            seen += await read(first)
            await server.services.supervisor.idle()
        await take_over(cluster, replica, primary)
        if not ended:
            seen += await read(first, count=3)

        async with asyncio.timeout(20):
            check_whole(await read_all(elsewhere, stream_id))
            check_whole(begun + await read(early))
            check_whole(seen if ended else seen + await read(first))


async def test_a_durable_stream_is_continued_after_its_copy_was_written_anew(
    talk: Talk, settings: Settings, sandbox: Running, server: Server, cluster: ValkeyCluster
) -> None:
    await story(server, sandbox, pace_ms=200)
    async with another_process(talk, settings) as dying, AsyncExitStack() as stack:
        first = await stack.enter_async_context(ask(dying.talk))
        talk.remember(first)
        stream_id = first.headers["X-Service-Stream-Id"]
        seen = await read(first, count=3)
        log = server.services.valkey.key(f"default:{talk.uid}", "log", stream_id)
        primary = await cluster.owner_of(key_slot(log.encode()))
        replica = await cut_off(cluster, primary)
        while text_of(seen).rstrip() != SAID:
            seen += await read(first, count=1)
        await take_over(cluster, replica, primary)
        assert await begun(await resumed(stack, talk, stream_id)) == seen  # The copy is whole again.
        await dying.kill()
        await dead(server, talk, stream_id)
        check_told_once(await read_all(talk, stream_id))


async def resumed(stack: AsyncExitStack, talk: Talk, stream_id: str) -> ClientResponse:
    """Resume the stream from its beginning until that is answered. Meanwhile it may only be unavailable."""
    answers: list[ClientResponse] = []

    async def is_answered() -> bool:
        answer = await stack.enter_async_context(resume(talk, stream_id))
        answers.append(answer)
        assert answer.status in {200, 503}, await answer.text()
        return bool(answer.status == 200)

    await until(is_answered, every_s=0.05)
    return answers[-1]


async def read_all(talk: Talk, stream_id: str) -> list[SeenEvent]:
    """Resume the stream from its beginning until a response reaches its end. Before, it may only be unavailable."""
    seen: list[SeenEvent] = []

    async def is_whole() -> bool:
        async with AsyncExitStack() as stack:
            *events, last = await all_events(await resumed(stack, talk, stream_id))
        seen[:] = [event for event in (*events, last) if event.id is not None]
        assert last.id is not None or last.content["error"]["error_type"] == "backend_unavailable"
        return last.id is not None

    await until(is_whole, every_s=0.05)
    return seen


async def read(response: ClientResponse, *, count: int | None = None) -> list[SeenEvent]:
    """Read the next `count` events, or all."""
    seen: list[SeenEvent] = []
    async for event in events(response):
        if event.id is not None:
            seen.append(event)
        if len(seen) == count:
            break
    return seen


def check_whole(seen: list[SeenEvent]) -> None:
    assert [event.id for event in seen] == list(range(1, len(seen) + 1))
    assert (seen[-1].name, text_of(seen)) == ("end", TOLD)
