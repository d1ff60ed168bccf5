"""A durable stream whose process is killed in the middle of an answer: another process continues it."""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any

import pytest

from actors.runtime.actor import Actor
from actors.runtime.context import Owner
from actors.runtime.mailbox import Cancel
from app.accounts.leaving.erasure import erase_user
from app.services import Services
from storage.configs.kinds.limits import LIMITS
from storage.conversations import attempts
from storage.conversations.admission import Slot
from storage.operators.audit import COMMAND
from storage.userdata.erasures import EraseUser
from tests.app.ai.conftest import Talk
from tests.app.ai.readers.dying import (
    KEY,
    STORY,
    Dying,
    ask,
    begun,
    check_told_once,
    dead,
    read,
    story,
    told_by_killed,
)
from tests.app.ai.readers.resumed import resume
from tests.app.ai.readers.two_servers import at, knows
from tests.app.ai.sandbox_accounts import VOICES, account
from tests.peers.sse_client import SeenEvent, all_events, events, named
from tests.running.servers import Server
from tests.waiting import until
from vendors.sandbox.server import Running


async def test_another_process_continues_the_answer_of_a_killed_one(
    talk: Talk, sandbox: Running, server: Server, other: Server, *, dying: Dying
) -> None:
    await story(server, sandbox)
    await knows(other, "story")
    stream_id, seen = await told_by_killed(dying, talk)
    last = seen[-1].id
    await asyncio.gather(*(dead(node, talk, stream_id) for node in (server, other)))
    rest, same = await asyncio.gather(*(read(resume(asker, stream_id, last)) for asker in (talk, at(other, talk))))
    assert rest == same
    check_told_once(seen + rest)
    assert len(list(sandbox.bill.since(0))) == 2
    end = rest[-1].content
    assert [failed["strategy"] for failed in end["attempts"]] == ["story"]
    [record] = (await talk.history())["conversation_records"]
    assert (record["status"], record["record_id"]) == ("complete", end["record_id"])
    assert [item["text"] for item in record["content"][1]["content"]] == STORY.split("\n\n")
    async with server.services.database.connection() as conn:
        stored = await attempts.of_stream(conn, "default", stream_id=stream_id)
    assert stored is not None
    outcomes = [(attempt["outcome"], attempt["usage_source"]) for attempt in stored.attempts]
    assert outcomes == [("failed", "estimated"), ("won", "vendor")]
    assert all(attempt["output_unit"] > 0 for attempt in stored.attempts)


async def test_a_repeated_request_gets_the_stream_of_a_dead_process_continued(
    talk: Talk, sandbox: Running, server: Server, dying: Dying
) -> None:
    await story(server, sandbox)
    stream_id, seen = await told_by_killed(dying, talk, headers=KEY)
    await dead(server, talk, stream_id)
    for _ in range(2):  # The second one gets the ended stream.
        async with ask(talk, headers=KEY) as repeated:
            assert repeated.headers["X-Service-Stream-Id"] == stream_id
            again = await all_events(repeated)
        check_told_once(again)
        assert again[: len(seen)] == seen
    assert len(list(sandbox.bill.since(0))) == 2
    assert (await talk.history())["conversation"]["record_count"] == 1


async def test_an_answer_that_was_complete_is_stored_without_another_call(
    talk: Talk, sandbox: Running, server: Server, dying: Dying
) -> None:
    await story(server, sandbox, times=0, pace_ms=50)
    async with AsyncExitStack() as stack:
        await dying.knows_story()
        async with ask(dying.talk) as response:
            talk.remember(response)
            stream_id, seen = response.headers["X-Service-Stream-Id"], list[SeenEvent]()
            async for event in events(response):
                seen.append(event)
                if len(seen) == 3:  # Keep the process from storing the answer.
                    conn = await stack.enter_async_context(server.services.database.transaction())
                    await conn.execute("select from conversation_records for update")
                if named(seen, "assistant_output_content_segment")[-1:] == [
                    {"index": 1, "text": STORY.split("\n\n")[1]}
                ]:
                    break
            services = server.services
            slot = Slot("default", talk.uid, stream_id)
            await until(lambda: is_saved(services, slot, b'"finish_reason":"stop"'))
            await dying.kill()
        await stack.aclose()
        await dead(server, talk, stream_id)
        rest = await read(resume(talk, stream_id, seen[-1].id))
    check_told_once(seen + rest)
    assert "attempts" not in rest[-1].content
    assert len(list(sandbox.bill.since(0))) == 1
    [record] = (await talk.history())["conversation_records"]
    assert record["status"] == "complete"


async def is_saved(services: Services, slot: Slot, text: bytes = b"") -> bool:
    saved = await services.valkey.call("GET", f"{slot.keys(services.valkey)[1]}:continuation")
    return saved is not None and text in saved


async def test_a_canceled_stream_of_a_dead_process_is_not_continued(
    talk: Talk, sandbox: Running, server: Server, dying: Dying
) -> None:
    await story(server, sandbox)
    stream_id, seen = await told_by_killed(dying, talk)
    await dead(server, talk, stream_id)
    for _ in range(2):
        async with talk.delete(f"/bp/ai/stream/{stream_id}") as canceled:
            assert canceled.status == 200
    rest = await read(resume(talk, stream_id, seen[-1].id))
    assert [(event.name, event.content["finish_reason"]) for event in rest] == [("end", "canceled")]
    assert len(list(sandbox.bill.since(0))) == 1
    talk.conversation_id = ""
    assert (await talk.turn("Another story", "story"))[-1].name == "end"


async def test_a_process_that_was_only_cut_off_neither_stores_nor_sends_its_answer(
    talk: Talk, sandbox: Running, server: Server, other: Server
) -> None:
    await story(server, sandbox)
    await knows(other, "story")
    async with ask(talk) as response:
        talk.remember(response)
        seen, stream_id = await begun(response), response.headers["X-Service-Stream-Id"]
        owner, limits = Owner("default", talk.uid), other.services.configs.singleton(LIMITS, "default")
        location = await other.services.admissions.find(*owner, stream_id)
        assert location is not None
        taken = await other.services.takeovers.find(owner, location, limits, dead=True)
        assert isinstance(taken, Actor)
        continued = await read(resume(at(other, talk), stream_id))
        check_told_once(continued)
        actor = server.services.supervisor.find(stream_id, owner)
        assert actor is not None
        actor.send(Cancel())  # It has something to store and to send.
        rest = [event async for event in events(response)]
    assert [(event.id, event.name) for event in rest] == [(None, "error")]
    assert seen == continued[: len(seen)]
    assert await read(resume(talk, stream_id)) == continued  # It is found where it was continued.
    [record] = (await talk.history())["conversation_records"]
    assert record["status"] == "complete"
    assert [item["text"] for item in record["content"][1]["content"]] == STORY.split("\n\n")
    assert await other.services.admissions.find(*owner, stream_id) == replace(
        location, process=other.services.heartbeat.process
    )


@pytest.mark.parametrize(
    ("fields", "saved"),
    [
        ({}, b'"continues":true'),
        ({"on_break": "fail"}, b'"continues":false'),
        ({"on_break": "restart"}, b'"continues":false'),
        ({"platform": "vendor_b_llm"}, b'"continues":false'),
        ({"speech": "voice"}, b'"continues":false'),
        ({"durable": False}, None),
    ],
)
async def test_only_durable_streams_are_saved_and_the_user_can_erase_what_is(
    talk: Talk, sandbox: Running, server: Server, *, fields: dict[str, Any], saved: bytes | None
) -> None:
    await account(server, sandbox, "voice", "vendor_c")
    voice = {"account": "voice", **VOICES["vendor_c"]}
    await server.services.configs.put("default", "speech", "voice", voice, author="test", origin=COMMAND)
    await story(server, sandbox, **fields)
    async with ask(talk) as response:
        await begun(response)
        slot = Slot("default", talk.uid, response.headers["X-Service-Stream-Id"])
        assert await is_saved(server.services, slot, saved or b"") is (saved is not None)
        await erase_user(server.services, EraseUser(app_id="default", uid=talk.uid))
        assert not await is_saved(server.services, slot)
