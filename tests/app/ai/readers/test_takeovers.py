"""When another process may take over a durable stream, and what a takeover that fails leaves behind."""

from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import asyncpg
import pytest

from actors.runtime.context import Owner
from app.settings import Settings
from storage.configs.kinds.limits import LIMITS
from storage.conversations import continuations
from storage.conversations.admission import Slot
from streams.wire.errors import StoreError
from tests.app.ai.conftest import Talk
from tests.app.ai.readers.dying import (
    STORY,
    Dying,
    another_process,
    ask,
    check_told_once,
    dead,
    read,
    story,
    told_by_killed,
)
from tests.app.ai.readers.resumed import resume, text_of
from tests.app.valkey_proxy import valkey_proxy_to
from tests.peers.sse_client import SeenEvent, events
from tests.running.servers import Server
from vendors.sandbox.server import Running

pytestmark = pytest.mark.one_valkey  # A proxy, or a name of a database, is used.


async def test_a_process_that_lost_its_subscription_keeps_its_stream(
    talk: Talk, sandbox: Running, server: Server, settings: Settings, tmp_path: Path
) -> None:
    await story(server, sandbox, times=0, pace_ms=300)
    async with (
        valkey_proxy_to(settings.redis_url, tmp_path / "v.sock") as proxy,
        another_process(talk, replace(settings, redis_url=proxy.url)) as cut_off,
        AsyncExitStack() as stack,
    ):
        await cut_off.knows_story()
        response = await stack.enter_async_context(ask(cut_off.talk))
        talk.remember(response)
        stream_id, seen = response.headers["X-Service-Stream-Id"], list[SeenEvent]()
        following = events(response)
        async for event in following:
            seen.append(event)
            if text_of(seen):
                break
        await proxy.stop()
        resumed = resume(talk, stream_id, seen[-1].id)
        async with resumed as elsewhere:
            rest_elsewhere = events(elsewhere)
            async for event in following:  # The process sends its events, which it cannot copy.
                seen.append(event)
                if "dog" in text_of(seen):
                    break
            await proxy.start()
            seen += [event async for event in following]
            copied = [event async for event in rest_elsewhere]
    check_told_once(seen)
    assert seen[-len(copied) :] == copied
    assert len(list(sandbox.bill.since(0))) == 1


async def test_a_takeover_that_a_store_interrupts_is_repeated(
    talk: Talk, sandbox: Running, server: Server, dying: Dying
) -> None:
    await story(server, sandbox)
    stream_id, seen = await told_by_killed(dying, talk)
    services, owner = server.services, Owner("default", talk.uid)
    location = await services.admissions.find(*owner, stream_id)
    assert location is not None
    await dead(server, talk, stream_id)
    conn = await asyncpg.connect(services.settings.database_url)
    name = await conn.fetchval("select current_database()")
    await conn.close()
    admin = await asyncpg.connect(services.settings.database_url.replace(f"///{name}?", "///postgres?"))
    try:
        await admin.execute(f"alter database {name} allow_connections false")
        await admin.fetch("select pg_terminate_backend(pid) from pg_stat_activity where datname = $1", name)
        with pytest.raises(StoreError):
            await services.takeovers.find(owner, location, services.configs.singleton(LIMITS, "default"), dead=True)
    finally:
        await admin.execute(f"alter database {name} allow_connections true")
        await admin.close()
    assert await services.admissions.find(*owner, stream_id) == location
    check_told_once(seen + await read(resume(talk, stream_id, seen[-1].id)))
    [record] = (await talk.history())["conversation_records"]
    assert record["status"] == "complete"


async def test_a_process_that_dies_between_its_claim_and_the_record_is_succeeded_by_another(
    talk: Talk, sandbox: Running, server: Server, dying: Dying
) -> None:
    await story(server, sandbox)
    stream_id, seen = await told_by_killed(dying, talk)
    services = server.services
    location = await services.admissions.find("default", talk.uid, stream_id)
    assert location is not None
    await dead(server, talk, stream_id)
    slot = Slot("default", talk.uid, stream_id, location.conversation_id, durable=True)
    claimed = await continuations.claim(
        services.valkey, slot, known=location.process, dead=True, process="one-that-died"
    )
    assert isinstance(claimed, continuations.Claim)
    check_told_once(seen + await read(resume(talk, stream_id, seen[-1].id)))
    [record] = (await talk.history())["conversation_records"]
    assert [item["text"] for item in record["content"][1]["content"]] == STORY.split("\n\n")
