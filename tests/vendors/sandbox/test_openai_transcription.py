"""The sandboxed transcription of OpenAI: recordings, models and response formats."""

import io

import pytest
from aiohttp import FormData

from streams.audio.audio import wav_header
from tests.vendors.sandbox.requests import SandboxClient, events, refusal
from vendors.sandbox.content import speech

HEARING = "/openai/v1/audio/transcriptions"
LARGE = "large"
"""Stands for a recording of 30 MB, which is only made by the worker that runs its test."""
GOOD_WAV = wav_header(16_000, data_bytes=32_000) + speech("x" * 15, 16_000)


def form(audio: bytes | None = GOOD_WAV, filename: str = "a.wav", **fields: str) -> FormData:
    body = FormData(default_to_multipart=True)
    for name, value in {"model": "whisper-1", **fields}.items():
        body.add_field(name.replace("__", "[]"), value)
    if audio is not None:
        body.add_field("file", io.BytesIO(audio), filename=filename)
    return body


def hear(ask: SandboxClient, body: FormData):
    headers = {"Authorization": "Bearer sandbox,text=Hello%20out%20there"}
    return ask.http.post(f"{ask.running.url}{HEARING}", data=body, headers=headers)


@pytest.mark.parametrize(
    ("body", "status", "param", "code"),
    [
        (form(None), 400, "file", "missing_required_parameter"),
        (form(filename="a.pcm"), 400, "file", None),
        (form(b"\0" * 4_000), 400, "file", "invalid_value"),
        (form(wav_header(16_000, data_bytes=1_600) + bytes(1_600)), 400, "file", "audio_too_short"),
        (LARGE, 413, None, None),
        (form(model="gpt-4o"), 404, "model", None),
        (form(language="english"), 400, "language", "invalid_language_format"),
        (form(language="iw"), 400, "language", "unsupported_language"),
        (form(model="whisper-1", language="yue"), 400, "language", "unsupported_language"),
        (form(response_format="xml"), 400, "response_format", "unsupported_value"),
        (
            form(model="gpt-4o-transcribe", response_format="verbose_json"),
            400,
            "response_format",
            "unsupported_value",
        ),
        (form(model="gpt-4o-transcribe-diarize", prompt="x"), 400, "prompt", "unsupported_parameter"),
        (form(model="gpt-transcribe", language="en"), 400, "language", "unsupported_parameter"),
        (form(timestamp_granularities__="word"), 400, "timestamp_granularities", "unsupported_value"),
        (form(lang="en"), 400, "lang", "unknown_parameter"),
    ],
)
async def test_faulty_recordings_are_refused(
    ask: SandboxClient, body: FormData | str, *, status: int, param: str | None, code: str | None
):
    if body == LARGE:
        body = form(wav_header(16_000, data_bytes=30_000_000) + bytes(30_000_000))
    async with hear(ask, body) as response:
        reported, error = await refusal(response)

    assert (reported, error["param"], error["code"]) == (status, param, code)


async def test_diarization_of_long_audio_requires_a_chunking_strategy(ask: SandboxClient):
    audio = wav_header(16_000, data_bytes=992_000) + speech("x" * 465, 16_000)

    async with hear(ask, form(audio, model="gpt-4o-transcribe-diarize")) as response:
        assert (await refusal(response))[1]["param"] == "chunking_strategy"


async def test_whisper_reports_words_and_segments(ask: SandboxClient):
    body = form(response_format="verbose_json", timestamp_granularities__="word")

    async with hear(ask, body) as response:
        answer = await response.json()

    assert (answer["text"], answer["duration"], answer["task"]) == ("Hello out there", 1.0, "transcribe")
    assert [word["word"] for word in answer["words"]] == ["Hello", "out", "there"]
    assert answer["words"][-1]["end"] == 1.0
    assert answer["usage"] == {"type": "duration", "seconds": 1}


async def test_whisper_ignores_the_stream_option(ask: SandboxClient):
    async with hear(ask, form(stream="true")) as response:
        assert (await response.json())["text"] == "Hello out there"


async def test_plain_text_becomes_a_line(ask: SandboxClient):
    async with hear(ask, form(response_format="text")) as response:
        assert (response.content_type, await response.text()) == ("text/plain", "Hello out there\n")


async def test_newer_models_stream_their_transcript(ask: SandboxClient):
    async with hear(ask, form(model="gpt-4o-transcribe", stream="true", prompt="two words")) as response:
        *deltas, done = await events(response)

    assert [delta["delta"] for delta in deltas] == ["Hello", " out", " there"]
    assert {delta["type"] for delta in deltas} == {"transcript.text.delta"}
    assert done == {
        "type": "transcript.text.done",
        "text": "Hello out there",
        "usage": {
            "type": "tokens",
            "input_tokens": 12,
            "input_token_details": {"text_tokens": 2, "audio_tokens": 10},
            "output_tokens": 3,
            "total_tokens": 15,
        },
    }
