"""The sandboxed OpenAI API: frames, headers and error responses."""

import io
import re
import wave
from base64 import b64decode
from typing import Any

import pytest

from streams.audio.audio import wav_header
from streams.audio.formats import sniff
from streams.audio.signatures import MP3
from tests.vendors.sandbox.requests import SandboxClient, events, refusal
from vendors.sandbox.content import mp3, speech

CHAT = "/openai/v1/chat/completions"
SPEECH = "/openai/v1/audio/speech"
HELLO = {
    "model": "gpt-4o",
    "messages": [{"role": "user", "content": "Good day to you, my dear old friend of mine!"}],
}
SAY = {"model": "tts-1", "input": "Hello you", "voice": "alloy"}
AUDIO = {"model": "gpt-audio", "modalities": ["text", "audio"], "audio": {"voice": "alloy", "format": "pcm16"}}


async def test_chat_streams_role_words_reason_usage_and_end(ask: SandboxClient):
    body = {**HELLO, "stream": True, "stream_options": {"include_usage": True}}

    async with ask.post(CHAT, body) as response:
        head, *words, finish, usage, done = await events(response)

    assert head["choices"][0]["delta"] == {"role": "assistant", "content": "", "refusal": None}
    assert head["object"] == "chat.completion.chunk"
    assert {chunk["id"] for chunk in (head, *words, finish, usage)} == {head["id"]}
    assert head["id"].startswith("chatcmpl-")
    assert all(chunk["usage"] is None and chunk["obfuscation"] for chunk in words)
    assert all(chunk["choices"][0]["finish_reason"] is None for chunk in words)
    text = "".join(chunk["choices"][0]["delta"]["content"] for chunk in words)
    assert text == f"You said: {HELLO['messages'][0]['content']}"  # type: ignore[index]
    assert finish["choices"] == [{"index": 0, "delta": {}, "logprobs": None, "finish_reason": "stop"}]
    assert usage["choices"] == []
    assert usage["usage"]["prompt_tokens"] == 10
    assert usage["usage"]["completion_tokens"] == len(words) == 12
    assert usage["usage"]["total_tokens"] == 22
    assert done == "[DONE]"


async def test_chat_streams_usage_and_padding_only_on_request(ask: SandboxClient):
    async with ask.post(CHAT, {**HELLO, "stream": True}) as response:
        chunks = (await events(response))[:-1]
    async with ask.post(
        CHAT, {**HELLO, "stream": True, "stream_options": {"include_obfuscation": False}}
    ) as response:
        plain = (await events(response))[:-1]

    assert not [chunk for chunk in chunks if "usage" in chunk or not chunk["choices"]]
    assert not [chunk for chunk in plain if "obfuscation" in chunk]


async def test_chat_that_is_not_streamed_is_one_object(ask: SandboxClient):
    async with ask.post(CHAT, {**HELLO, "max_completion_tokens": 3}) as response:
        answer = await response.json()

    assert answer["object"] == "chat.completion"
    (choice,) = answer["choices"]
    assert choice["message"] == {
        "role": "assistant",
        "content": "You said: Good ",
        "refusal": None,
        "annotations": [],
    }
    assert choice["finish_reason"] == "length"
    assert answer["usage"]["completion_tokens"] == 3


async def test_every_answer_carries_the_vendors_headers(ask: SandboxClient):
    async with ask.post(CHAT, HELLO) as good, ask.post(CHAT, {}) as bad, ask.post(CHAT, HELLO, "wrong") as unknown:
        answers = [good, bad, unknown]

    assert len({answer.headers["x-request-id"] for answer in answers}) == 3
    for answer in answers:
        assert answer.headers["openai-version"] == "2020-10-01"
        assert re.fullmatch(r"\d+ms", answer.headers["x-ratelimit-reset-tokens"])


async def test_models_are_listed(ask: SandboxClient):
    async with ask.get("/openai/v1/models") as response:
        models = await response.json()

    assert models["object"] == "list"
    assert {"gpt-4o", "whisper-1", "tts-1", "gpt-audio"} <= {model["id"] for model in models["data"]}


@pytest.mark.parametrize("model", ["gpt-4o", "gpt-4o-2024-11-20", "gpt-3.5-turbo-0125", "o3"])
async def test_model_snapshots_are_recognized(ask: SandboxClient, model: str):
    async with ask.post(CHAT, {**HELLO, "model": model}) as response:
        assert (await response.json())["model"] == model


def chat(**fields: Any) -> dict[str, Any]:
    return {**HELLO, **fields}


def say(**fields: Any) -> dict[str, Any]:
    return {**SAY, **fields}


@pytest.mark.parametrize(
    ("path", "body", "status", "param", "code"),
    [
        (CHAT, b"{", 400, None, None),
        (CHAT, b"[]", 400, None, None),
        (CHAT, {"messages": []}, 400, None, None),
        (CHAT, {"model": "gpt-4o"}, 400, "messages", "missing_required_parameter"),
        (CHAT, chat(messages=[]), 400, "messages", "empty_array"),
        (CHAT, chat(messages="hi"), 400, "messages", "invalid_type"),
        (CHAT, chat(messages=["hi"]), 400, "messages[0]", "invalid_type"),
        (CHAT, chat(messages=[{"role": "bot", "content": "hi"}]), 400, "messages[0].role", "invalid_value"),
        (CHAT, chat(messages=[{"role": "user", "content": None}]), 400, "messages.[0].content", None),
        (CHAT, chat(model="gpt-9"), 404, None, "model_not_found"),
        (CHAT, chat(model="tts-1"), 404, "model", None),
        (CHAT, chat(temperature=3), 400, "temperature", "integer_above_max_value"),
        (CHAT, chat(temperature=2.5), 400, "temperature", "decimal_above_max_value"),
        (CHAT, chat(temperature="hot"), 400, "temperature", "invalid_type"),
        (CHAT, chat(max_completion_tokens=0), 400, "max_completion_tokens", "integer_below_min_value"),
        (CHAT, chat(temprature=1), 400, "temprature", "unknown_parameter"),
        (CHAT, chat(stream_options={"include_usage": True}), 400, "stream_options", None),
        (CHAT, chat(model="o3", max_tokens=5), 400, "max_tokens", "unsupported_parameter"),
        (CHAT, chat(model="gpt-5", temperature=0.5), 400, "temperature", "unsupported_value"),
        (
            CHAT,
            chat(messages=[{"role": "user", "content": "a " * 128_001}]),
            400,
            "messages",
            "context_length_exceeded",
        ),
        (CHAT, chat(model="gpt-audio"), 400, "model", "invalid_value"),
        (CHAT, chat(model="gpt-audio", modalities=["text", "audio"]), 400, "audio", "missing_required_parameter"),
        (CHAT, chat(**AUDIO | {"model": "gpt-4o"}), 400, "modalities", "invalid_value"),
        (CHAT, chat(**AUDIO | {"audio": {"format": "wav"}}), 400, "voice", "missing_required_parameter"),
        (CHAT, chat(**AUDIO | {"audio": {"voice": "bob", "format": "wav"}}), 400, "voice", "invalid_value"),
        (
            CHAT,
            chat(stream=True, **AUDIO | {"audio": {"voice": "alloy", "format": "wav"}}),
            400,
            "audio.format",
            "unsupported_value",
        ),
        (SPEECH, say(model="gpt-4o"), 404, "model", None),
        (SPEECH, say(input=None), 400, "input", "missing_required_parameter"),
        (SPEECH, say(input=""), 400, "input", "empty_string"),
        (SPEECH, say(input="x" * 4_097), 400, "input", "string_above_max_length"),
        (SPEECH, say(input=5), 400, "input", "invalid_type"),
        (SPEECH, {"model": "tts-1", "input": "a"}, 400, "voice", "missing_required_parameter"),
        (SPEECH, say(voice="marin"), 400, "voice", "invalid_value"),
        (SPEECH, say(response_format="ogg"), 400, "response_format", "invalid_value"),
        (SPEECH, say(speed=5), 400, "speed", "integer_above_max_value"),
        (SPEECH, say(speed=0.1), 400, "speed", "decimal_below_min_value"),
        (SPEECH, say(stream_format="sse"), 400, "stream_format", "unsupported_value"),
        (SPEECH, say(instructions="x" * 4_097), 400, "instructions", "string_above_max_length"),
        (SPEECH, say(pitch=1), 400, "pitch", "unknown_parameter"),
    ],
)  # fmt: skip
async def test_invalid_fields_are_refused_with_field_and_code(
    ask: SandboxClient, path: str, body: Any, *, status: int, param: str | None, code: str | None
):
    async with ask.post(path, body) as response:
        reported, error = await refusal(response)

    assert (reported, error["param"], error["code"]) == (status, param, code)
    assert error["type"] == "invalid_request_error"
    (entry,) = ask.running.bill.since()
    assert (entry.how, entry.billed) == ("refused", {})


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (SPEECH, say(response_format="opus")),
        (CHAT, chat(**AUDIO | {"audio": {"voice": "alloy", "format": "flac"}})),
    ],
)
async def test_unsupported_audio_formats_are_reported(ask: SandboxClient, path: str, body: Any):
    async with ask.post(path, body) as response:
        assert response.status == 501
        assert "is not supported" in (await response.json())["error"]["message"]


@pytest.mark.parametrize(
    ("response_format", "content_type"),
    [("mp3", "audio/mpeg"), ("wav", "audio/wav"), ("pcm", "audio/pcm")],
)
async def test_speech_has_the_same_samples_in_every_format(
    ask: SandboxClient, response_format: str, content_type: str
):
    async with ask.post(SPEECH, say(response_format=response_format)) as response:
        assert response.content_type == content_type
        assert response.headers["Transfer-Encoding"] == "chunked"
        audio = await response.read()

    samples = speech("Hello you", 24_000)
    if response_format == "mp3":
        assert sniff(audio) == MP3
    assert (
        audio == {"mp3": mp3(samples, 24_000), "wav": wav_header(24_000) + samples, "pcm": samples}[response_format]
    )


async def test_speech_of_the_newer_model_can_be_streamed_as_events(ask: SandboxClient):
    async with ask.post(SPEECH, say(model="gpt-4o-mini-tts", stream_format="sse")) as response:
        *deltas, done = await events(response)

    assert {delta["type"] for delta in deltas} == {"speech.audio.delta"}
    assert b"".join(b64decode(delta["audio"]) for delta in deltas) == mp3(speech("Hello you", 24_000), 24_000)
    assert done["type"] == "speech.audio.done"
    assert done["usage"]["input_tokens"] == 2
    assert done["usage"]["output_tokens"] == 2 * len(deltas)


async def test_chat_audio_streams_unaligned_pieces_without_a_finish_reason(ask: SandboxClient):
    body = {**AUDIO, "messages": HELLO["messages"], "stream": True, "stream_options": {"include_usage": True}}

    async with ask.post(CHAT, body) as response:
        head, *deltas, last, usage, done = await events(response)

    opened = head["choices"][0]["delta"]
    assert (opened["content"], opened["audio"]["transcript"]) == (None, "")
    spoken = [chunk["choices"][0]["delta"]["audio"] for chunk in deltas]
    text = f"You said: {HELLO['messages'][0]['content']}"  # type: ignore[index]
    assert "".join(audio.get("transcript", "") for audio in spoken) == text
    pieces = [b64decode(audio["data"]) for audio in spoken if "data" in audio]
    assert b"".join(pieces) == speech(text, 24_000)
    assert {len(piece) % 2 for piece in pieces[:-1]} == {1}
    assert list(last["choices"][0]) == ["index", "delta"]
    assert list(last["choices"][0]["delta"]["audio"]) == ["expires_at"]
    assert usage["usage"]["completion_tokens_details"]["audio_tokens"] == 2 * len(pieces)
    assert done == "[DONE]"


async def test_chat_audio_without_streaming_is_a_file_with_its_transcript(ask: SandboxClient):
    body = {**AUDIO, "messages": HELLO["messages"], "audio": {"voice": "cedar", "format": "wav"}}

    async with ask.post(CHAT, body) as response:
        message = (await response.json())["choices"][0]["message"]

    assert message["content"] is None
    with wave.open(io.BytesIO(b64decode(message["audio"]["data"]))) as file:
        assert file.getframerate() == 24_000
        assert file.readframes(1 << 20) == speech(message["audio"]["transcript"], 24_000)
