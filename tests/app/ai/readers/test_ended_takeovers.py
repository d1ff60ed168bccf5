"""A durable stream of a killed process that nobody continues: what it said is stored, and its key stays taken."""

import asyncio
from typing import Any

import pytest

from storage.conversations import attempts, continuations
from storage.conversations.admission import Slot
from storage.operators.audit import COMMAND
from streams.tasks import background
from tests.app.ai.conftest import Talk
from tests.app.ai.readers.dying import (
    KEY,
    SAID,
    Dying,
    ask,
    check_told_once,
    dead,
    keep_alive,
    read,
    story,
    told_by_killed,
)
from tests.app.ai.readers.resumed import limits, resume, text_of
from tests.app.ai.readers.two_servers import at, knows
from tests.app.ai.sandbox_accounts import VOICES, account
from tests.peers.sse_client import SeenEvent, all_events, events
from tests.running.servers import Server
from tests.waiting import until
from vendors.sandbox.server import Running


async def check_stored(server: Server, talk: Talk, stream_id: str, *, status: str) -> None:
    """Check that the record has what was said, and that the vendor call is listed once."""
    record = (await talk.history())["conversation_records"][-1]
    assert record["status"] == status
    assert [message["role"] for message in record["content"]] == ["user", "assistant"]
    assert [item["text"].rstrip() for item in record["content"][1]["content"]] == [SAID]
    async with server.services.database.connection() as conn:
        stored = await attempts.of_stream(conn, "default", stream_id=stream_id)
    assert stored is not None
    assert [attempt["outcome"] for attempt in stored.attempts if attempt["stage"] == "llm"] == ["failed"]


def check_error(seen: list[SeenEvent], rest: list[SeenEvent]) -> None:
    """Check that an `error` follows what was said."""
    assert [(event.id, event.name) for event in rest] == [(len(seen) + 1, "error")]
    assert rest[0].content["error"]["extra"]["retryable"]


@pytest.mark.parametrize("fields", [{"on_break": "fail"}, {"speech": "voice"}])
async def test_a_repeated_request_gets_what_was_said_and_an_error_without_another_call(
    talk: Talk, sandbox: Running, server: Server, dying: Dying, fields: dict[str, Any]
) -> None:
    await account(server, sandbox, "voice", "vendor_c")
    voice = {"account": "voice", **VOICES["vendor_c"]}
    await server.services.configs.put("default", "speech", "voice", voice, author="test", origin=COMMAND)
    await story(server, sandbox, **fields)
    stream_id, seen = await told_by_killed(dying, talk, headers=KEY)
    await dead(server, talk, stream_id)
    calls = len(list(sandbox.bill.since(0)))
    for _ in range(2):  # The second one gets the ended stream.
        async with ask(talk, headers=KEY) as repeated:
            assert repeated.headers["X-Service-Stream-Id"] == stream_id
            again = await all_events(repeated)
        assert again[: len(seen)] == seen
        assert [event.name for event in again].count("error") == 1
        assert again[-1].name == "error"
    assert len(list(sandbox.bill.since(0))) == calls
    await check_stored(server, talk, stream_id, status="incomplete")


async def killed_before_its_answer(talk: Talk, sandbox: Running, server: Server, dying: Dying) -> str:
    """Return the stream of a request whose process is killed before the first word of the answer."""
    await story(server, sandbox, fault="hang_before_output", position=0)
    await dying.knows_story()
    async with ask(dying.talk, headers=KEY) as response:
        talk.remember(response)
        stream_id = response.headers["X-Service-Stream-Id"]
        async for event in events(response):
            if event.name == "user_input":
                break
        services, slot = server.services, Slot("default", talk.uid, stream_id)
        await until(lambda: continuations.find(services.valkey, slot))
        await dying.kill()
    await dead(server, talk, stream_id)
    return stream_id


async def test_a_repeated_request_of_a_stream_without_an_answer_gets_an_error_without_another_call(
    talk: Talk, sandbox: Running, server: Server, dying: Dying
) -> None:
    stream_id = await killed_before_its_answer(talk, sandbox, server, dying)
    calls = len(list(sandbox.bill.since(0)))
    async with ask(talk, headers=KEY) as repeated:
        assert repeated.headers["X-Service-Stream-Id"] == stream_id
        again = await all_events(repeated)
    assert [event.name for event in again] == ["start", "user_input", "error"]
    other = talk.post("/bp/ai/conversation", data=talk.params("story", language_code="de") + b"x", headers=KEY)
    async with other as refused:
        assert refused.status == 409
    assert len(list(sandbox.bill.since(0))) == calls
    [record] = (await talk.history())["conversation_records"]
    assert (record["status"], len(record["content"])) == ("incomplete", 1)


async def test_a_canceled_stream_without_an_answer_is_interrupted(
    talk: Talk, sandbox: Running, server: Server, dying: Dying
) -> None:
    stream_id = await killed_before_its_answer(talk, sandbox, server, dying)
    async with talk.delete(f"/bp/ai/stream/{stream_id}") as canceled:
        assert canceled.status == 200
    [record] = (await talk.history())["conversation_records"]
    assert (record["status"], len(record["content"])) == ("interrupted", 1)
    end = (await read(resume(talk, stream_id)))[-1]
    assert (end.id, end.name, end.content["finish_reason"]) == (3, "end", "canceled")
    assert end.content["record_id"] == record["record_id"]


async def test_reading_the_history_does_not_end_a_turn_that_can_be_continued(
    talk: Talk, sandbox: Running, server: Server, dying: Dying
) -> None:
    await story(server, sandbox)
    stream_id, seen = await told_by_killed(dying, talk)
    await dead(server, talk, stream_id)
    history = await talk.history()
    assert history["conversation"]["status"] == "running"
    assert history["conversation_records"][0]["status"] == "running"
    check_told_once(seen + await read(resume(talk, stream_id, seen[-1].id)))
    history = await talk.history()
    assert history["conversation"]["status"] == "normal"
    assert history["conversation_records"][0]["status"] == "complete"


async def test_reading_the_history_stores_what_was_said_if_the_turn_cannot_be_continued(
    talk: Talk, sandbox: Running, server: Server, dying: Dying
) -> None:
    await story(server, sandbox, on_break="fail")
    stream_id, seen = await told_by_killed(dying, talk)
    await dead(server, talk, stream_id)
    assert (await talk.history())["conversation"]["status"] == "normal"
    await check_stored(server, talk, stream_id, status="incomplete")
    check_error(seen, await read(resume(talk, stream_id, seen[-1].id)))


async def test_what_was_said_is_stored_before_a_new_turn_begins(
    talk: Talk, sandbox: Running, server: Server, dying: Dying
) -> None:
    await story(server, sandbox)
    stream_id, seen = await told_by_killed(dying, talk)
    await dead(server, talk, stream_id)
    assert (await talk.turn("Go on", "story"))[-1].name == "end"
    await check_stored(server, talk, stream_id, status="incomplete")
    check_error(seen, await read(resume(talk, stream_id, seen[-1].id)))


@pytest.mark.parametrize("on_break", ["continue", "fail"])
async def test_a_canceled_stream_is_stored_and_ends_as_canceled(
    talk: Talk, sandbox: Running, server: Server, dying: Dying, on_break: str
) -> None:
    await story(server, sandbox, on_break=on_break)
    stream_id, seen = await told_by_killed(dying, talk)
    await dead(server, talk, stream_id)
    for _ in range(2):
        async with talk.delete(f"/bp/ai/stream/{stream_id}") as canceled:
            assert canceled.status == 200
    async with server.services.database.connection() as conn:
        status = await conn.fetchval("select status from conversation_records where stream_id = $1", stream_id)
    assert status == "interrupted"
    await check_stored(server, talk, stream_id, status="interrupted")
    [end] = await read(resume(talk, stream_id, seen[-1].id))
    assert (end.id, end.name, end.content["finish_reason"]) == (seen[-1].id + 1, "end", "canceled")
    assert len(list(sandbox.bill.since(0))) == 1
    assert (await talk.turn("Another story", "story"))[-1].name == "end"


async def test_what_was_said_is_stored_when_nobody_has_continued_it_in_time(
    talk: Talk, sandbox: Running, server: Server, dying: Dying
) -> None:
    await story(server, sandbox)
    stream_id, seen = await told_by_killed(dying, talk)
    await dead(server, talk, stream_id)
    await server.services.turns.dead_turns.sweep()
    assert (await talk.history())["conversation"]["status"] == "running"
    await limits(server, stream_s=0.01)
    await server.services.turns.dead_turns.sweep()
    await check_stored(server, talk, stream_id, status="incomplete")
    check_error(seen, await read(resume(talk, stream_id, seen[-1].id)))


@pytest.mark.parametrize("on_break", ["continue", "fail"])
async def test_requests_that_find_a_dead_process_at_the_same_time_store_its_answer_once(
    talk: Talk, sandbox: Running, server: Server, other: Server, *, dying: Dying, on_break: str
) -> None:
    await story(server, sandbox, on_break=on_break)
    await knows(other, "story")
    stream_id, seen = await told_by_killed(dying, talk, headers=KEY)
    there, path = at(other, talk), f"/bp/ai/stream/{stream_id}"

    async def canceled(asker: Talk) -> int:
        async with asker.delete(path) as response:
            return response.status

    async with background(keep_alive(server, other)):
        await asyncio.gather(*(dead(node, talk, stream_id) for node in (server, other)))
        results = await asyncio.gather(
            read(resume(there, stream_id, seen[-1].id)),
            read(ask(there, headers=KEY)),
            read(ask(talk, headers=KEY)),
            there.history(),
            talk.history(),
            canceled(there),
            canceled(talk),
            server.services.turns.dead_turns.sweep(),
        )
    rest, first, second = results[:3]
    assert first == second == seen + rest
    assert [event.id for event in first] == list(range(1, len(first) + 1))
    assert set(results[5:7]) <= {200, 503}
    [record] = (await talk.history())["conversation_records"]
    assert [message["role"] for message in record["content"]] == ["user", "assistant"]
    assert "".join(item["text"] for item in record["content"][1]["content"]) == text_of(first)
