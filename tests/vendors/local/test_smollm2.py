"""SmolLM2 generates answers and reuses its context."""

import asyncio

import pytest

from tests.vendors.local.conftest import Local, events, refusal
from vendors.local.engines.engines import Engines
from vendors.local.engines.protocols import ChatOptions
from vendors.protocols import ChatMessage, Finish, TextDelta, Usage


@pytest.fixture(autouse=True)
def _installed(needs) -> None:
    needs("smollm2")


async def test_question_is_answered_in_a_stream(local: Local) -> None:
    options = {"model": "smollm2", "stream": True, "temperature": 0, "stream_options": {"include_usage": True}}
    async with local.chat("What is the capital of Japan?", **options) as response:
        chunks = await events(response)
    *deltas, finish, usage, done = chunks
    texts = [delta["choices"][0]["delta"]["content"] for delta in deltas]
    assert len(texts) > 4
    assert "Tokyo" in "".join(texts)
    assert finish["choices"][0]["finish_reason"] == "stop"
    assert usage["usage"]["completion_tokens"] >= len(texts) - 1
    assert usage["usage"]["prompt_tokens"] > 10
    assert done == {}


async def test_answers_do_not_exceed_the_requested_length(local: Local) -> None:
    async with local.chat("Count to one hundred.", model="smollm2", max_tokens=5) as response:
        answer = await response.json()
    assert answer["choices"][0]["finish_reason"] == "length"
    assert answer["usage"]["completion_tokens"] == 5
    assert answer["choices"][0]["message"]["content"]


@pytest.mark.soak
async def test_the_answer_is_independent_of_cached_prompts(local: Local) -> None:
    """The context is reused, so the content of another conversation must not affect the answer."""
    said = ("My dog is called Rex.", "What is the name of my dog?")
    answers = []
    for question in (("Tell me about the sea.",), said, said[:1], said):
        async with local.chat(*question, model="smollm2", temperature=0, max_tokens=10) as response:
            answers.append((await response.json())["choices"][0]["message"]["content"])
    assert answers[1] == answers[3]


async def test_template_syntax_in_user_text_is_plain_text(engines: Engines) -> None:
    counts = []
    for text in ("<|im_end|>", "hello"):
        async with engines.chat("smollm2").reply([ChatMessage("user", text)], ChatOptions(max_tokens=1)) as items:
            counts += [item.input_token async for item in items if isinstance(item, Usage)]
    assert counts[0] > counts[1]


@pytest.mark.soak
async def test_oldest_messages_are_left_out_first(local: Local) -> None:
    """Messages are left out so that the context has room for the answer."""
    long, newest = "tell me of the sea " * 240, ("My dog is called Rex.", "Say yes.")
    counts = []
    for said in (newest, (long, *newest), (long[: len(long) // 12], *newest)):
        async with local.chat(*said, model="smollm2", max_tokens=400, temperature=0) as response:
            assert response.status == 200
            counts.append((await response.json())["usage"]["prompt_tokens"])
    assert counts[1] == counts[0]
    assert counts[2] > counts[0] + 100


async def test_message_that_never_fits_is_refused(local: Local) -> None:
    async with local.chat("tell me of the sea " * 400, model="smollm2", stream=True) as response:
        status, error = await refusal(response)
    assert (status, error["code"], error["param"]) == (400, "context_length_exceeded", "messages")


async def test_generation_stops_when_nobody_reads(engines: Engines) -> None:
    """Leaving the block waits until the model has stopped, so the next answer begins immediately."""
    model = engines.chat("smollm2")
    messages = [ChatMessage("user", "Write a very long story about the sea, with many chapters.")]
    async with asyncio.timeout(20):
        async with model.reply(messages, ChatOptions(max_tokens=512)) as items:
            texts = [item async for item in _until_text(items)]
        assert len(texts) < 4
        async with model.reply(messages, ChatOptions(max_tokens=2)) as items:
            seen = [item async for item in items]
    assert Finish("length") in seen


async def _until_text(items):
    async for item in items:
        yield item
        if isinstance(item, TextDelta) and item.text:
            return


@pytest.mark.soak
async def test_characters_of_several_tokens_arrive_complete(local: Local) -> None:
    async with local.chat("Repeat exactly: 日本 😀 é", model="smollm2", temperature=0, max_tokens=40) as response:
        assert "\ufffd" not in (await response.json())["choices"][0]["message"]["content"]
