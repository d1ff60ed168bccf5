"""If another process has ended a turn, its stream has no `end` event, but its answer is stored."""

from itertools import product
from typing import Any, get_args

import pytest

from app.services import Services
from storage.conversations import conversations
from storage.conversations.conversations import RecordStatus
from storage.conversations.dead_turns import DeadTurns
from storage.conversations.retry_queue import enqueue, write_queued
from storage.conversations.turn_rows import ClosedTurn, NewTurn, TurnOutcome
from storage.processes.heartbeats import Heartbeat
from streams.wire.ids import new_id
from tests.app.ai.conftest import Talk
from tests.peers.sse_client import all_events, events, named
from tests.peers.vendor import Vendor
from tests.running.servers import Server

STORY = "Once upon a time"
ENDS = [status for status in get_args(RecordStatus) if status != "running"]


@pytest.fixture
def server(shared_server: Server) -> Server:
    return shared_server


@pytest.fixture
def services(server: Server) -> Services:
    return server.services


async def take_over(services: Services, conversation_id: str) -> None:
    """End the running turn, as a process does that considers this one dead."""
    observer = Heartbeat(services.valkey, services.database, "observer", dict, void_after_s=0)
    dead_turns = DeadTurns(services.database, observer, services.clock)
    assert await dead_turns.end("default", conversation_id, gives_up=True)


async def until_story(talk: Talk, response: Any) -> None:
    talk.remember(response)
    text = ""
    async for event in events(response):
        text += "".join(chunk["text"] for chunk in named([event], "assistant_output_chunk"))
        if text == STORY:
            return


async def records(services: Services, conversation_id: str) -> list[tuple[str, list[str], int]]:
    """Return the status, the texts and the tokens of the answer of each record."""
    async with services.database.connection() as conn:
        rows = await conn.fetch(
            "select status, content, input_token + output_token from conversation_records"
            " where conversation_id = $1 order by record_id",
            conversation_id,
        )
    return [(status, [m["content"][0]["text"] for m in content], tokens) for status, content, tokens in rows]


@pytest.mark.parametrize("canceled", [False, True])
async def test_stream_whose_turn_was_taken_over_ends_with_an_error_and_its_answer_is_stored(
    talk: Talk, strategy, server: Server, vendor: Vendor, *, canceled: bool
) -> None:
    await strategy("slow", f"slow:{STORY}")
    await strategy("quick", "say:Fine")
    async with talk.say("story", "slow") as response:
        await until_story(talk, response)
        await take_over(server.services, talk.conversation_id)
        if canceled:
            stream_id = response.headers["X-Service-Stream-Id"]
            async with talk.delete(f"/bp/ai/stream/{stream_id}") as answer:
                assert answer.status == 200
        vendor.release.set()
        last = (await all_events(response))[-1]
    assert last.name == "error"
    error = last.content["error"]
    assert (error["error_type"], error["extra"]["retryable"]) == ("invalid_operation", True)
    assert error["extra"]["record_id"] == 1
    assert (await talk.turn("go on", "quick"))[-1].content["record_id"] == 2
    (status, texts, tokens), *_ = await records(server.services, talk.conversation_id)
    assert (status, texts) == ("incomplete", ["story", STORY])
    assert (await talk.history())["conversation"]["record_token"] == tokens + 8
    assert vendor.calls[1]["messages"][-2] == {"role": "assistant", "content": STORY}


async def test_stream_that_fails_after_its_turn_was_taken_over_has_its_own_error_and_its_answer_is_stored(
    talk: Talk, strategy, server: Server, vendor: Vendor
) -> None:
    await strategy("slow", f"slow:{STORY}", waits={"between_s": 0.5})
    async with talk.say("story", "slow") as response:
        await until_story(talk, response)
        await take_over(server.services, talk.conversation_id)
        last = (await all_events(response))[-1]
    assert last.content["error"]["error_type"] == "backend_unavailable"
    assert [(s, t) for s, t, _ in await records(server.services, talk.conversation_id)] == [
        ("incomplete", ["story", STORY])
    ]


async def test_error_of_a_stream_whose_conversation_was_deleted_says_that_nothing_is_stored(
    talk: Talk, strategy, server: Server, vendor: Vendor
) -> None:
    await strategy("slow", f"slow:{STORY}")
    async with talk.say("story", "slow") as response:
        await until_story(talk, response)
        async with server.services.database.connection() as conn:
            assert (
                await conversations.delete(conn, "default", talk.uid, conversation_id=talk.conversation_id)
                is not None
            )
        vendor.release.set()
        last = (await all_events(response))[-1]
    assert last.name == "error"
    assert last.content["error"]["error_type"] == "item_not_found"


async def test_queued_end_is_written_although_another_process_has_ended_the_turn(
    talk: Talk, strategy, server: Server, vendor: Vendor
) -> None:
    await strategy("quick", "say:Fine")
    services = server.services
    turn = await opened(services, talk.uid)
    talk.conversation_id = turn.conversation_id
    await take_over(services, turn.conversation_id)
    assert (await talk.turn("go on", "quick"))[-1].content["record_id"] == 2
    for _ in range(2):
        await enqueue(services.valkey, ended(turn, "complete"))
        await write_queued(services.database, services.valkey)
    assert await records(services, turn.conversation_id) == [
        ("complete", ["story", STORY], 7),
        ("complete", ["go on", "Fine"], 8),
    ]
    assert (await talk.history())["conversation"]["record_token"] == 7 + 8


async def opened(services: Services, uid: str) -> NewTurn:
    turn = NewTurn(
        app_id="default",
        conversation_id=new_id(),
        uid=uid,
        content=[{"role": "user", "content": [{"type": "text", "text": "story", "source": {}}]}],
        stream_id=new_id(),
        max_stream_s=600,
        process=new_id(),
    )
    assert await services.turns.open(turn) == 1
    return turn


def ended(turn: NewTurn, status: RecordStatus) -> ClosedTurn:
    said = status != "failed"
    text = {"type": "text", "text": STORY, "source": {}}
    message = {"role": "assistant", "content": [text]} if said else None
    answered = TurnOutcome(status, "slow" if said else "", message, 3 * said, 4 * said, tokens_estimated=False)
    return ClosedTurn("default", turn.uid, turn.conversation_id, 1, turn.stream_id, answered, [])


@pytest.mark.parametrize(("first", "then"), [*product([*ENDS, "taken over", "left running"], ENDS)])
async def test_close_turn_stores_the_answer_once_and_returns_the_status_of_the_record(
    services: Services, first: str, then: RecordStatus
) -> None:
    """`first`: the state of the record before it is closed with `then`."""
    turn = await opened(services, "u")
    if first == "taken over":
        await take_over(services, turn.conversation_id)
    elif first != "left running":
        assert await services.turns.close(ended(turn, first)) == first  # type: ignore[arg-type]
    written = await services.turns.close(ended(turn, then))
    [(status, texts, tokens)] = await records(services, turn.conversation_id)
    if first in {"taken over", "left running"}:
        assert written == status == ("incomplete" if first == "taken over" else then)
    else:
        assert written is None
        assert status == first
    assert await services.turns.status_of(ended(turn, then)) == status
    source = then if first in {"taken over", "left running"} else first
    assert (texts, tokens) == ((["story", STORY], 7) if source != "failed" else (["story"], 0))
    async with services.database.connection() as conn:
        counted = await conn.fetchval("select record_token from conversations")
    assert counted == tokens
