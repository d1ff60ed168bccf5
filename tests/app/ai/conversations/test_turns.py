"""A turn over HTTP: its events, record, history and prompt."""

import asyncio
import hashlib

import pytest

from tests.app.ai.conftest import Talk
from tests.peers.sse_client import all_events, events, named
from tests.peers.vendor import Vendor
from tests.running.servers import Server


@pytest.fixture
def server(shared_server: Server) -> Server:
    return shared_server


async def test_a_turn_emits_start_input_chunks_segment_and_end(talk: Talk, strategy) -> None:
    await strategy("one", "say:Hello there my friend")
    async with talk.say("Hi", "one") as response:
        assert response.headers["Cache-Control"] == "no-store"
        assert response.headers["X-Accel-Buffering"] == "no"
        assert response.headers["X-Service-Stream-Id"]
        assert "Content-Encoding" not in response.headers
        talk.remember(response)
        seen = await all_events(response)
    names = [event.name for event in seen]
    assert names[:2] == ["start", "user_input"]
    assert set(names[2:-2]) == {"assistant_output_chunk"}
    assert names[-2:] == ["assistant_output_content_segment", "end"]
    assert [event.id for event in seen] == list(range(1, len(seen) + 1))
    assert named(seen, "user_input") == ["Hi"]
    text = "".join(chunk["text"] for chunk in named(seen, "assistant_output_chunk"))
    assert text == "Hello there my friend"
    end = seen[-1].content
    assert end["conversation_id"] == talk.conversation_id
    assert end["record_id"] == 1
    assert end["strategy"] == "one"
    assert end["finish_reason"] == "stop"
    assert end["unit_price"] == {
        "input_per_price": 0,
        "output_per_price": 0,
        "input_token": 7,
        "output_token": 4,
    }
    assert end["digest"] == {"chars": len(text), "sha256": hashlib.sha256(text.encode()).hexdigest()}
    assert {"admission", "input", "first_token", "first_text", "total", "overhead"} <= end["latency_ms"].keys()


async def test_paragraphs_are_counted_and_their_delimiter_is_stored_but_not_sent(talk: Talk, strategy) -> None:
    await strategy("two", "say:First one.|| ||Second one.", paragraph_delimiter="||")
    seen = await talk.turn("Go", "two")
    assert named(seen, "assistant_output_content_segment") == [
        {"index": 0, "text": "First one."},
        {"index": 1, "text": "Second one."},
    ]
    record = (await talk.history())["conversation_records"][0]
    texts = [item for item in record["content"][1]["content"] if item["type"] == "text"]
    assert [(item["text"], item.get("delimiter")) for item in texts] == [
        ("First one.", "||"),
        ("Second one.", None),
    ]


async def test_history_holds_both_sides_newest_first(talk: Talk, strategy) -> None:
    await strategy("one", "say:Hello there")
    await talk.turn("first", "one")
    await talk.turn("second", "one")
    data = await talk.history()
    conversation, records = data["conversation"], data["conversation_records"]
    assert conversation["status"] == "normal"
    assert (conversation["last_record_id"], conversation["record_count"]) == (2, 2)
    assert conversation["record_token"] == 2 * (7 + 2)
    assert [record["record_id"] for record in records] == [2, 1]
    user, assistant = records[1]["content"]
    assert user["content"] == [
        {"type": "text", "text": "first", "source": {"from_user": True, "platform": "user", "model": ""}}
    ]
    assert assistant["content"] == [
        {
            "type": "text",
            "text": "Hello there",
            "source": {"from_user": False, "platform": "vendor_b_llm", "model": "say:Hello there"},
        }
    ]
    assert records[0]["status"] == "complete"
    assert records[0]["strategy"] == "one"
    only = await talk.history(**{"from": 1, "size": 5})
    assert [record["record_id"] for record in only["conversation_records"]] == [1]
    one = await talk.history(record_id=2, **{"from": 1})
    assert [record["record_id"] for record in one["conversation_records"]] == [2]


async def test_the_model_gets_prompt_params_and_history(talk: Talk, strategy, vendor: Vendor) -> None:
    await strategy("one", "say:Fine", system_prompt="You are {{.bot.name}}, {{.missing}}polite.")
    await talk.turn("first", "one", params={"bot": {"name": "Pat"}})
    await talk.turn("second", "one", params={"bot": {"name": "Pat"}})
    assert vendor.calls[1]["messages"] == [
        {"role": "system", "content": "You are Pat, polite."},
        {"role": "user", "content": "first"},
        {"role": "assistant", "content": "Fine"},
        {"role": "user", "content": "second"},
    ]


async def test_history_beyond_the_token_budget_is_left_out(talk: Talk, strategy, vendor: Vendor) -> None:
    await strategy("one", "say:Fine", context_tokens=30)
    for text in ("a" * 100, "b" * 40, "c"):
        await talk.turn(text, "one")
    requested = [message["content"] for message in vendor.calls[2]["messages"]]
    assert requested == ["b" * 40, "Fine", "c"]


async def test_text_split_anywhere_in_the_upload_is_put_together(talk: Talk, strategy) -> None:
    await strategy("one", "say:Fine")
    raw = talk.params("one") + b" \n " + "grüße 你好 🎉".encode()

    async def byte_by_byte():
        for byte in raw:
            yield bytes([byte])

    async with talk.post("/bp/ai/conversation", data=byte_by_byte()) as response:
        seen = await all_events(response)
    assert named(seen, "user_input") == ["grüße 你好 🎉"]


async def test_the_answer_begins_while_the_model_still_generates(talk: Talk, strategy, vendor: Vendor) -> None:
    await strategy("slow", "slow:Once upon a time")
    async with talk.say("story", "slow") as response:
        reader = events(response)
        async for event in reader:
            if event.name == "assistant_output_chunk":
                break
        assert not vendor.release.is_set()
        vendor.release.set()
        rest = [event async for event in reader]
    assert rest[-1].name == "end"


async def test_a_second_turn_of_the_same_conversation_is_refused_while_one_runs(
    talk: Talk, strategy, vendor: Vendor
) -> None:
    await strategy("one", "say:Fine")
    await strategy("slow", "slow:Once upon")
    await talk.turn("hello", "one")
    async with talk.say("go on", "slow") as running:
        reader = events(running)
        while (await anext(reader)).name != "assistant_output_chunk":
            pass
        async with talk.say("again", "one") as second:
            assert second.status == 409
            assert (await second.json())["error"]["error_type"] == "invalid_operation"
        assert (await talk.history())["conversation"]["status"] == "running"
        vendor.release.set()
        assert [event async for event in reader][-1].name == "end"
    seen = await talk.turn("third", "one")
    assert seen[-1].content["record_id"] == 3


async def test_the_next_turn_may_follow_immediately_after_end(talk: Talk, strategy) -> None:
    await strategy("one", "say:Fine")
    for number in range(1, 9):
        assert (await talk.turn("again", "one"))[-1].content["record_id"] == number


async def test_a_user_has_four_streams_at_most(talk: Talk, strategy, vendor: Vendor) -> None:
    await strategy("slow", "slow:Once upon")
    running = []
    for _ in range(4):
        response = await talk.say("go", "slow")
        running.append(response)
    async with talk.say("go", "slow") as fifth:
        assert fifth.status == 429
        assert int(fifth.headers["Retry-After"]) >= 1
    vendor.release.set()
    for response in running:
        assert (await all_events(response))[-1].name == "end"
        response.release()


async def test_a_disconnect_before_the_input_is_complete_stores_nothing(
    talk: Talk, strategy, server: Server
) -> None:
    await strategy("one", "say:Fine")
    sent = asyncio.Event()

    async def half():
        yield talk.params("one")
        yield b"half a"
        sent.set()
        await asyncio.Event().wait()

    response = await talk.post("/bp/ai/conversation", data=half())
    conversation_id = response.headers["X-Service-Conversation-Id"]
    await sent.wait()
    response.close()
    await server.services.supervisor.idle()
    async with talk.get("/bp/ai/conversation/query", params={"conversation_id": conversation_id}) as answer:
        assert answer.status == 404


async def test_a_disconnect_after_the_input_does_not_stop_the_answer(
    talk: Talk, strategy, server: Server, vendor: Vendor
) -> None:
    await strategy("slow", "slow:Once upon a time")
    response = await talk.say("story", "slow")
    talk.remember(response)
    await vendor.begun.wait()
    response.close()
    vendor.release.set()
    await server.services.supervisor.idle()
    record = (await talk.history())["conversation_records"][0]
    assert record["status"] == "complete"
    assert record["content"][1]["content"][0]["text"] == "Once upon a time"


async def test_a_user_sees_no_conversation_of_another(talk: Talk, strategy, server: Server) -> None:
    await strategy("one", "say:Fine")
    await talk.turn("mine", "one")
    uid, token = await server.login()
    other = Talk(server, uid, token, conversation_id=talk.conversation_id)
    async with other.say("yours?", "one") as response:
        assert response.status == 404
        assert (await response.json())["error"]["error_type"] == "item_not_found"


async def test_waiting_for_the_client_does_not_count_as_overhead(talk: Talk, strategy) -> None:
    await strategy("one", "say:Fine")

    async def slowly():
        yield b" "
        await asyncio.sleep(1)  # The server may see the request slightly after it was sent.
        yield talk.params("one") + b"Hello"

    async with talk.post("/bp/ai/conversation", data=slowly()) as response:
        latency_ms = (await all_events(response))[-1].content["latency_ms"]
    assert latency_ms["admission"] >= 500
    assert latency_ms["overhead"] < 300
