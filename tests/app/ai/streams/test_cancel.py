"""Cancelling closes vendor calls immediately, stores what was sent, and frees the turn before the response."""

import asyncio
import time
from base64 import b64decode
from collections.abc import AsyncIterator
from hashlib import sha256

import pytest

from storage.operators.audit import COMMAND
from tests.app.ai.conftest import Talk
from tests.app.ai.readers.two_servers import at
from tests.app.ai.sandbox_accounts import account
from tests.app.ai.speech.speaking_server import module_server, server
from tests.peers.sse_client import SeenEvent, all_events, events, named
from tests.peers.vendor import Vendor
from tests.running.servers import Server
from vendors.sandbox.faults import key_of
from vendors.sandbox.server import Running

__all__ = ["module_server", "server"]


def said(seen: list[SeenEvent]) -> str:
    return "".join(chunk["text"] for chunk in named(seen, "assistant_output_chunk"))


async def cancel(talk: Talk, stream_id: str, **query: int) -> int:
    async with talk.delete(f"/bp/ai/stream/{stream_id}", params=query) as answer:
        if answer.status == 200:
            assert await answer.read() == b"{}"
        return answer.status


async def test_a_turn_that_is_cancelled_at_its_input_ends_as_cancelled(talk: Talk, strategy) -> None:
    await strategy("quick", "say:Fine")
    await strategy("slow", "slow:Once upon a time")
    await talk.turn("Hello", "quick")
    for _ in range(5):
        response = await talk.say("story", "slow")
        reading = events(response)
        assert [(await anext(reading)).name for _ in range(2)] == ["start", "user_input"]
        assert await cancel(talk, response.headers["X-Service-Stream-Id"]) == 200
        rest = [event async for event in reading]
        assert (rest[-1].name, rest[-1].content["finish_reason"]) == ("end", "canceled")


@pytest.mark.parametrize("elsewhere", [False, True])
async def test_a_cancelled_answer_is_stored_partially_and_frees_the_turn(
    talk: Talk, strategy, other: Server, vendor: Vendor, *, elsewhere: bool
) -> None:
    await strategy("slow", "slow:Once upon a time")
    await strategy("quick", "say:Fine")
    response = await talk.say("story", "slow")
    talk.remember(response)
    stream_id = response.headers["X-Service-Stream-Id"]
    reading = events(response)
    seen = [await anext(reading) for _ in range(3)]
    while said(seen) != "Once upon a time":
        seen.append(await anext(reading))
    canceller = at(other, talk) if elsewhere else talk
    began = time.monotonic()
    assert await cancel(canceller, stream_id) == 200
    assert time.monotonic() - began < 1
    following = await talk.turn("go on", "quick")
    assert following[-1].name == "end"
    seen += [event async for event in reading]
    assert seen[-1].name == "end"
    assert seen[-1].content["finish_reason"] == "canceled"
    assert seen[-1].content["record_id"] == 1
    record = (await talk.history())["conversation_records"][1]
    assert record["status"] == "interrupted"
    assert record["content"][1]["content"][0]["text"] == said(seen) == "Once upon a time"
    await asyncio.wait_for(vendor.gone.wait(), 1)
    assert await cancel(canceller, stream_id) == 200


async def test_turn_cancelled_before_its_first_word_stores_the_users_message(
    talk: Talk, strategy, vendor: Vendor
) -> None:
    await strategy("hang", "hang")
    response = await talk.say("Are you there?", "hang")
    talk.remember(response)
    await vendor.begun.wait()
    assert await cancel(talk, response.headers["X-Service-Stream-Id"]) == 200
    seen = await all_events(response)
    assert seen[-1].content["finish_reason"] == "canceled"
    record = (await talk.history())["conversation_records"][0]
    assert record["status"] == "interrupted"
    assert [message["role"] for message in record["content"]] == ["user"]
    assert vendor.closed == ["hang"]


async def test_turn_cancelled_before_its_input_is_complete_stores_nothing(
    talk: Talk, strategy, server: Server
) -> None:
    await strategy("one", "say:Fine")
    go_on = asyncio.Event()

    async def half() -> AsyncIterator[bytes]:
        yield talk.params("one")
        yield b"half a"
        await go_on.wait()

    response = await talk.post("/bp/ai/conversation", data=half())
    talk.remember(response)
    assert await cancel(talk, response.headers["X-Service-Stream-Id"]) == 200
    seen = await all_events(response)
    go_on.set()
    assert [event.name for event in seen] == ["start", "end"]
    assert seen[-1].content["finish_reason"] == "canceled"
    assert seen[-1].content["record_id"] is None
    query = {"conversation_id": talk.conversation_id}
    async with talk.get("/bp/ai/conversation/query", params=query) as answer:
        assert answer.status == 404


async def test_finished_stream_can_be_cancelled_without_effect(talk: Talk, strategy, other: Server) -> None:
    await strategy("one", "say:All of it")
    async with talk.say("hi", "one") as response:
        talk.remember(response)
        await all_events(response)
    stream_id = response.headers["X-Service-Stream-Id"]
    assert await cancel(talk, stream_id) == 200
    assert await cancel(at(other, talk), stream_id) == 200
    assert (await talk.history())["conversation_records"][0]["status"] == "complete"


@pytest.mark.parametrize("heard_ms", ["-1", "1.5", "1_000", "+5", "86400001", "99999999999999999999", "9" * 5000])
async def test_heard_ms_is_a_number_of_at_most_a_day(talk: Talk, other: Server, strategy, heard_ms: str) -> None:
    await strategy("one", "say:All of it")
    async with talk.say("hi", "one") as response:
        await all_events(response)
    path = f"/bp/ai/stream/{response.headers['X-Service-Stream-Id']}"
    for here in (talk, at(other, talk)):
        async with here.delete(path, params={"heard_ms": heard_ms}) as answer:
            assert answer.status == 400
            assert "heard_ms" in (await answer.json())["error"]["message"]


async def test_speech_that_has_failed_can_be_cancelled_without_effect(
    talk: Talk, server: Server, vendor: Vendor
) -> None:
    account = {"platform": "vendor_b_audio", "base_url": f"{vendor.url}/nowhere", "api_key": "k"}
    await server.services.configs.put("default", "vendor_accounts", "mute", account, author="test", origin=COMMAND)
    value = {"account": "mute", "model": "tts-1", "voice": "alloy"}
    await server.services.configs.put("default", "speech", "mute", value, author="test", origin=COMMAND)
    async with talk.post("/bp/ai/audio/tts", json={"text": "Hello.", "strategies": ["mute"]}) as response:
        seen = await all_events(response)
    assert seen[-1].name == "error"
    assert await cancel(talk, response.headers["X-Service-Stream-Id"]) == 200


@pytest.mark.parametrize("elsewhere", [False, True])
@pytest.mark.parametrize("spoken", [False, True])
async def test_cancelled_speech_ends_as_canceled_and_its_vendor_call_is_closed(
    talk: Talk, server: Server, other: Server, sandbox: Running, *, spoken: bool, elsewhere: bool
) -> None:
    key_options = {"pace_ms": 100} if spoken else {"delay_ms": 30_000}
    await account(server, sandbox, "voice", "vendor_b_audio", key_of(**key_options))
    value = {"account": "voice", "model": "tts-1", "voice": "alloy"}
    await server.services.configs.put("default", "speech", "voice", value, author="test", origin=COMMAND)
    text = "A sentence that takes its time. " * 30
    response = await talk.post("/bp/ai/audio/tts", json={"text": text, "strategies": ["voice"]})
    reading = events(response)
    seen = [await anext(reading) for _ in range(4 if spoken else 1)]
    await sandbox.bill.wait(lambda entry: entry.vendor == "openai")
    stream_id = response.headers["X-Service-Stream-Id"]
    assert await cancel(at(other, talk) if elsewhere else talk, stream_id) == 200
    seen += [event async for event in reading]
    last = seen[-1].content
    assert seen[-1].name == "end"
    assert last["finish_reason"] == "canceled"
    assert last["strategy"] == ("voice" if spoken else None)
    audio = b"".join(b64decode(chunk["audio"]) for chunk in named(seen, "audio_chunk"))
    assert bool(audio) == spoken
    assert last["digest"]["sha256"] == sha256(audio).hexdigest()
    call = await asyncio.wait_for(sandbox.bill.wait(lambda entry: entry.ended is not None), 5)
    assert call.how == "closed_by_client"
    assert await cancel(talk, stream_id) == 200


async def spoken(talk: Talk, text: str, **fields: int) -> tuple[str, list]:
    """Read an answer with its audio to the end. Return the stream's id and its events."""
    async with talk.say(text, "scripted") as response:
        talk.remember(response)
        return response.headers["X-Service-Stream-Id"], await all_events(response)


def text_of(record: dict) -> str:
    messages = [message for message in record["content"] if message["role"] == "assistant"]
    return "".join(item["text"] for message in messages for item in message["content"] if item["type"] == "text")


@pytest.mark.parametrize("elsewhere", [False, True])
async def test_finished_answer_is_cut_to_the_words_that_were_heard(
    talk: Talk, other: Server, *, elsewhere: bool
) -> None:
    stream_id, seen = await spoken(talk, "Tell me a story")
    assert seen[-1].name == "end", seen[-1]
    whole = text_of((await talk.history())["conversation_records"][0])
    assert await cancel(at(other, talk) if elsewhere else talk, stream_id, heard_ms=1500) == 200
    record = (await talk.history())["conversation_records"][0]
    assert record["status"] == "interrupted"
    heard = text_of(record)
    assert whole.startswith(heard)
    assert 5 < len(heard) < 60  # 1.5 s of speech
    assert whole[len(heard)] in " \n,.", "it was cut inside a word"
    assert await cancel(talk, stream_id, heard_ms=400) == 200
    assert text_of((await talk.history())["conversation_records"][0]) == heard


async def test_finished_answer_that_was_heard_completely_is_unchanged(talk: Talk) -> None:
    stream_id, _ = await spoken(talk, "Hello")
    before = (await talk.history())["conversation_records"][0]
    assert await cancel(talk, stream_id, heard_ms=600_000) == 200
    after = (await talk.history())["conversation_records"][0]
    assert after["status"] == "complete"
    assert text_of(after) == text_of(before)


async def test_unheard_answers_are_removed_from_their_record(talk: Talk) -> None:
    stream_id, _ = await spoken(talk, "Hello")
    assert await cancel(talk, stream_id, heard_ms=0) == 200
    record = (await talk.history())["conversation_records"][0]
    assert record["status"] == "interrupted"
    assert [message["role"] for message in record["content"]] == ["user"]
