"""OpenAI's SDK understands the sandbox and gets the same results as our client."""

import io
from base64 import b64decode
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import pytest

from streams.audio.audio import wav_header
from tests.sampling import sampled
from tests.vendors.chat.openai_clients import TEXT, account, collect, output, spoken_chat, voice
from vendors.account import ChatSpec, RecognitionSpec
from vendors.chat.openai import OpenAIChat
from vendors.http.transport import VendorHttp
from vendors.protocols import AudioFormat, ChatMessage, Transcript, Usage
from vendors.sandbox.content import speech
from vendors.sandbox.faults import key_of
from vendors.sandbox.server import Running
from vendors.speech.openai import OpenAITranscription

if TYPE_CHECKING:
    import openai

pytestmark = pytest.mark.xdist_group("openai")  # One worker imports the SDK.

ASKED = "Tell me a story about the sea, please."
WAV = wav_header(16_000, data_bytes=64_000) + speech("x" * 30, 16_000)


class _Wav:
    """The input of a recording."""

    async def read(self):
        yield WAV


def client(sandbox: Running, **key_options: object) -> "openai.AsyncOpenAI":
    import openai  # noqa: PLC0415 - slow to import, for each worker of the tests

    return openai.AsyncOpenAI(base_url=f"{sandbox.url}/openai/v1", api_key=key_of(**key_options), max_retries=1)


@pytest.fixture
async def sdk(sandbox: Running) -> AsyncIterator["openai.AsyncOpenAI"]:
    async with client(sandbox) as opened:
        yield opened


async def test_chat_stream_gives_the_same_text_and_usage(http: VendorHttp, sandbox: Running, sdk):
    ours = await collect(
        OpenAIChat(http, account(sandbox), ChatSpec("gpt-4o")).reply([ChatMessage("user", ASKED)]), []
    )
    stream = await sdk.chat.completions.create(
        model="gpt-4o",
        messages=[{"role": "user", "content": ASKED}],
        stream=True,
        stream_options={"include_usage": True},
    )
    chunks = [chunk async for chunk in stream]

    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == output(ours)
    assert len(text) > 300
    usage = chunks[-1].usage
    assert Usage(usage.prompt_tokens, usage.completion_tokens) in ours
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "stop"


async def test_chat_that_is_not_streamed_gives_the_same_text(sandbox: Running, sdk):
    answer = await sdk.chat.completions.create(
        model="gpt-4o", messages=[{"role": "user", "content": "who are you"}]
    )

    assert answer.choices[0].message.content.startswith("I am a scripted model")
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens


@pytest.mark.parametrize("model", ["tts-1", "gpt-4o-mini-tts"])
@pytest.mark.parametrize("audio_format", ["mp3", "wav"])
async def test_speech_gives_the_same_bytes(http: VendorHttp, sandbox: Running, sdk, model: str, audio_format: str):
    ours = output(await collect(voice(model=model, audio_format=audio_format)(http, account(sandbox)), []))
    async with sdk.audio.speech.with_streaming_response.create(
        model=model, voice="alloy", input=TEXT, response_format="mp3" if audio_format == "mp3" else "pcm"
    ) as answer:
        audio = b"".join([piece async for piece in answer.iter_bytes()])

    assert audio == ours
    assert len(audio) > 10_000


async def test_transcription_gives_the_same_text(http: VendorHttp, sandbox: Running):
    text = "Ein Satz, zwei Wörter mehr."
    spec = RecognitionSpec("gpt-4o-transcribe", language_code="de")
    ours = OpenAITranscription(http, account(sandbox, text=text), spec)

    async with client(sandbox, text=text) as sdk:
        requested = {"model": "gpt-4o-transcribe", "language": "de", "response_format": "json"}
        whole = await sdk.audio.transcriptions.create(file=("a.wav", io.BytesIO(WAV)), **requested)
        stream = await sdk.audio.transcriptions.create(file=("a.wav", io.BytesIO(WAV)), stream=True, **requested)
        events = [event async for event in stream]
    heard = await collect(ours.transcribe(_Wav(), AudioFormat("audio/wav", 0)), [])

    assert whole.text == text
    assert heard[-1] == Transcript(text, final=True)
    assert "".join(event.delta for event in events[:-1]) == text
    assert (events[-1].type, events[-1].text) == ("transcript.text.done", text)
    assert whole.usage.model_dump() == events[-1].usage.model_dump()
    first, second, third = (entry.billed for entry in sandbox.bill.since())
    assert first == second == third


async def test_whisper_reports_its_words(sandbox: Running):
    async with client(sandbox, text="one two") as sdk:
        answer = await sdk.audio.transcriptions.create(
            file=("a.wav", io.BytesIO(WAV)),
            model="whisper-1",
            response_format="verbose_json",
            timestamp_granularities=["word", "segment"],
        )

    assert answer.duration == 2.0
    assert [word.word for word in answer.words] == ["one", "two"]
    assert answer.segments[0].text == "one two"


async def test_chat_audio_has_the_same_bytes(http: VendorHttp, sandbox: Running, sdk):
    ours = output(await collect(spoken_chat(audio_format="mp3")(http, account(sandbox)), []))
    answer = await sdk.chat.completions.create(
        model="gpt-audio",
        modalities=["text", "audio"],
        audio={"voice": "alloy", "format": "mp3"},
        messages=[{"role": "system", "content": "Read word for word."}, {"role": "user", "content": TEXT}],
    )

    spoken = answer.choices[0].message.audio
    assert spoken.transcript == TEXT
    assert len(ours) > 10_000
    assert b64decode(spoken.data) == ours


async def test_models_are_listed(sdk):
    assert "gpt-4o" in [model.id async for model in sdk.models.list()]


REFUSALS = {
    "unauthorized": ("AuthenticationError", 1),
    "rate_limited": ("RateLimitError", 2),
    "server_error": ("InternalServerError", 2),
    "unavailable": ("InternalServerError", 2),
}
"""Faults, the error of the SDK, and how often it calls."""


@pytest.mark.parametrize("fault", sampled(REFUSALS, ["unauthorized", "rate_limited"]))
async def test_refusals_are_reported_with_their_kind(sandbox: Running, fault: str):
    import openai  # noqa: PLC0415 - slow to import, for each worker of the tests

    kind, calls = REFUSALS[fault]
    async with client(sandbox, fault=fault, retry_after_s=0.002) as sdk:
        with pytest.raises(getattr(openai, kind)) as error:
            await sdk.chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": "hi"}])

    assert error.value.request_id.startswith("req_")
    assert len(list(sandbox.bill.since())) == calls


async def test_errors_inside_the_stream_reach_the_client(sandbox: Running):
    import openai  # noqa: PLC0415 - slow to import, for each worker of the tests

    async with client(sandbox, fault="error_inside_200", position=2) as sdk:
        stream = await sdk.chat.completions.create(
            model="gpt-4o", messages=[{"role": "user", "content": "repeat 9 words"}], stream=True
        )
        seen = [(await anext(stream)).choices[0].delta.content for _ in range(3)]
        with pytest.raises(openai.APIError, match="The server had an error"):
            await anext(stream)

    assert seen == ["", "word1 ", "word2 "]
