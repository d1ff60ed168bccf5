"""The scripted model, as an OpenAI client sees it."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.vendors.local.conftest import Local, events, refusal
from vendors.local.engines.scripted import answer
from vendors.protocols import ChatMessage


def text_of(chunks: list[dict]) -> str:
    return "".join(choice["delta"].get("content", "") for chunk in chunks if chunk for choice in chunk["choices"])


async def whole(response) -> dict:
    assert response.status == 200
    return await response.json()


async def test_streams_are_framed_like_openais(local: Local) -> None:
    async with local.chat("hello", stream=True, stream_options={"include_usage": True}) as response:
        chunks = await events(response)
    *deltas, finish, usage, done = chunks
    assert done == {}
    assert deltas[0]["choices"][0]["delta"] == {"role": "assistant", "content": "", "refusal": None}
    assert {chunk["object"] for chunk in chunks[:-1]} == {"chat.completion.chunk"}
    assert len({chunk["id"] for chunk in chunks[:-1]}) == 1
    assert all(chunk["usage"] is None for chunk in [*deltas, finish])
    assert all(chunk["choices"][0]["finish_reason"] is None for chunk in deltas)
    assert finish["choices"] == [{"index": 0, "delta": {}, "logprobs": None, "finish_reason": "stop"}]
    assert usage["choices"] == []
    assert usage["usage"]["completion_tokens"] == len(deltas) - 1 == len(text_of(deltas).split())
    assert text_of(chunks).startswith("Hello!")


async def test_usage_is_sent_only_on_request(local: Local) -> None:
    async with local.chat("hello", stream=True) as response:
        chunks = await events(response)
    assert all("usage" not in chunk and chunk["choices"] for chunk in chunks[:-1])


async def test_the_complete_answer_equals_the_joined_stream(local: Local) -> None:
    async with local.chat("Tell me a story", stream=True) as response:
        streamed = text_of(await events(response))
    async with local.chat("Tell me a story") as response:
        answered = await whole(response)
    assert answered["object"] == "chat.completion"
    assert answered["choices"][0]["message"]["content"] == streamed
    assert answered["choices"][0]["finish_reason"] == "stop"
    usage = answered["usage"]
    assert usage["prompt_tokens"] == 4
    assert usage["completion_tokens"] == len(streamed.split())
    assert usage["total_tokens"] == 4 + usage["completion_tokens"]


async def test_story_has_paragraphs_of_a_few_sentences_about_its_subject(local: Local) -> None:
    async with local.chat("Please tell me a story about a small red fox.") as response:
        story = (await whole(response))["choices"][0]["message"]["content"]
    paragraphs = story.split("\n\n")
    assert len(paragraphs) >= 3
    assert all(2 <= paragraph.count(".") <= 4 for paragraph in paragraphs)
    assert "a small red fox" in story


async def test_history_and_system_prompt_reach_the_model(local: Local) -> None:
    async with local.chat("I like tea", "And rain", "What did I say?") as response:
        earlier = (await whole(response))["choices"][0]["message"]["content"]
    assert earlier == "Earlier you said: I like tea Then you said: And rain"
    messages = [
        {"role": "developer", "content": "Be kind."},
        {
            "role": "user",
            "content": [{"type": "text", "text": "What are your "}, {"type": "text", "text": "instructions?"}],
        },
    ]
    async with local.post("/chat/completions", model="scripted:0", messages=messages) as response:
        assert (await whole(response))["choices"][0]["message"]["content"] == "My instructions are: Be kind."


async def test_answers_are_cut_at_the_token_limit(local: Local) -> None:
    for field in ("max_completion_tokens", "max_tokens"):
        async with local.chat("repeat 10 words", **{field: 3}) as response:
            answered = await whole(response)
        assert answered["choices"][0]["message"]["content"].split() == ["word1", "word2", "word3"]
        assert answered["choices"][0]["finish_reason"] == "length"
        assert answered["usage"]["completion_tokens"] == 3


@pytest.mark.parametrize("fields", [{"model": "scripted:40"}, {"model": "scripted:0", "pace_ms": 40}])
async def test_words_arrive_at_the_requested_pace(local: Local, fields: dict) -> None:
    clock = asyncio.get_running_loop().time
    async with local.chat("repeat 4 words", stream=True, **fields) as response:
        begun = clock()
        await events(response)
    assert clock() - begun > 0.1


@pytest.mark.parametrize(
    ("fields", "status", "param", "code"),
    [
        ({"model": "gpt-9"}, 404, "model", "model_not_found"),
        ({"model": "scripted:soon"}, 404, "model", "model_not_found"),
        ({"model": 5}, 400, "model", None),
        ({"messages": []}, 400, "messages", None),
        ({"messages": [{"role": "tool", "content": "x"}]}, 400, "messages[0].role", None),
        ({"max_tokens": 0}, 400, "max_tokens", None),
        ({"temperature": 2.5}, 400, "temperature", None),
        ({"pace_ms": -1}, 400, "pace_ms", None),
    ],
)
async def test_errors_have_openais_format(
    local: Local, fields: dict, status: int, param: str, code: str | None
) -> None:
    async with local.chat("hello", **fields) as response:
        reported, error = await refusal(response)
    assert (reported, error["param"], error["code"]) == (status, param, code)
    assert error["type"] == "invalid_request_error"
    assert error["message"]


async def test_bodies_that_are_not_json_are_refused(local: Local) -> None:
    async with local.http.post(f"{local.url}/chat/completions", data=b"{") as response:
        assert (await refusal(response))[0] == 400


@given(st.text(max_size=200))
def test_every_message_gets_the_same_answer_each_time(text: str) -> None:
    messages = [ChatMessage("user", text)]
    assert answer(messages) == answer(messages) != ""


@pytest.mark.parametrize("text", ["hello", "Hi!", "Good morning, dear Parley.", "hey you"])
def test_greetings_are_answered(text: str) -> None:
    assert answer([ChatMessage("user", text)]).startswith("Hello!")


def test_unscripted_messages_are_quoted() -> None:
    said = answer([ChatMessage("user", "Hello, I wanted to  ask about trains")])
    assert said == "You said: Hello, I wanted to ask about trains"
