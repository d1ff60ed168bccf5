"""Synthesis and recognition with OpenAI's protocol, with a vendor at a real socket."""

import asyncio
import io
import wave
from base64 import b64encode
from email import message_from_bytes
from email.policy import HTTP
from typing import Any

import pytest
from pydantic import SecretStr

from streams.input_buffer import InputBuffer
from streams.wire.codec import dumps, loads
from streams.wire.errors import InvalidParameter
from tests.vendors.http.upstream import Upstream, cut, hold, plain, refusing, streaming
from vendors.account import Account, RecognitionSpec, SpeechSpec
from vendors.errors import Garbled, Refused, VendorError
from vendors.http.sse import LIMIT_BYTES
from vendors.http.transport import VendorHttp
from vendors.protocols import AudioBytes, AudioFormat, SpeechFormat, SpeechItem, Transcript, Usage, Visemes
from vendors.speech.local import LocalSpeech
from vendors.speech.openai import OpenAITranscription

PCM = AudioFormat("audio/pcm", 16_000)


def account(upstream: Upstream) -> Account:
    return Account("main", "local_audio", upstream.url, SecretStr("k1"))


def buffered(audio: bytes) -> InputBuffer:
    full = InputBuffer()
    full.write(audio)
    full.end()
    return full


async def transcribed(
    http: VendorHttp, upstream: Upstream, audio: bytes = b"\1\0" * 800, kind: AudioFormat = PCM, **spec: Any
) -> list[Transcript]:
    client = OpenAITranscription(http, account(upstream), RecognitionSpec(**{"model": "whisper-1", **spec}))
    async with client.transcribe(buffered(audio), kind) as transcripts:
        return [transcript async for transcript in transcripts]


def fields(upstream: Upstream, number: int = 0) -> dict[str, tuple[bytes, str | None, str]]:
    """Return the content, file name and type of each part of a form."""
    seen = upstream.seen[number]
    head = f"Content-Type: {seen.headers['Content-Type']}\r\n\r\n".encode()
    form = message_from_bytes(head + seen.body, policy=HTTP)
    return {
        part.get_param("name", header="content-disposition"): (
            part.get_payload(decode=True),
            part.get_filename(),
            part.get_content_type(),
        )
        for part in form.iter_parts()
    }


async def test_pcm_is_uploaded_as_a_wav_file(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(plain(200, '{"text": " Grüß Gott. "}'.encode()))
    pcm = bytes(range(256)) * 10

    assert await transcribed(http, upstream, pcm, language_code="de-AT", prompt="Namen: Ödön") == [
        Transcript("Grüß Gott.", final=True)
    ]

    (seen,) = upstream.seen
    assert seen.path == "/audio/transcriptions"
    assert seen.headers["Authorization"] == "Bearer k1"
    form = fields(upstream)
    assert {name: content[0].decode() for name, content in form.items() if name != "file"} == {
        "model": "whisper-1",
        "response_format": "json",
        "language": "de",
        "prompt": "Namen: Ödön",
    }
    raw, filename, mime_type = form["file"]
    assert (filename, mime_type) == ("audio.wav", "audio/wav")
    with wave.open(io.BytesIO(raw)) as file:
        assert (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (16_000, 1, 2)
        assert file.readframes(9999) == pcm


@pytest.mark.parametrize(
    ("mime_type", "filename"),
    [
        ("audio/ogg", "audio.ogg"),
        ("audio/mpeg", "audio.mp3"),
        ("audio/mp4", "audio.m4a"),
        ("audio/webm", "audio.webm"),
    ],
)
async def test_files_are_uploaded_unchanged_with_a_name_of_their_type(
    http: VendorHttp, upstream: Upstream, mime_type: str, filename: str
):
    upstream.respond_with(plain(200, b'{"text": "a"}'))

    await transcribed(http, upstream, b"OggS...", AudioFormat(mime_type, 0))

    assert fields(upstream)["file"] == (b"OggS...", filename, mime_type)
    assert "prompt" not in fields(upstream)


async def test_silence_is_a_complete_answer_without_words(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(plain(200, b'{"text": " "}'))

    assert await transcribed(http, upstream) == [Transcript("", final=True)]


async def test_a_busy_recognizer_is_called_once_more_with_the_same_audio(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(refusing(503, retry_after_ms="5"), plain(200, b'{"text": "a"}'))

    assert await transcribed(http, upstream, b"\1\2" * 100_000) == [Transcript("a", final=True)]

    assert fields(upstream, 0) == fields(upstream, 1)
    assert len(fields(upstream, 1)["file"][0]) == 200_044


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"text": null}', b'{"text": 1}', b"{", b"<html>"])
async def test_answers_without_text_are_garbled(http: VendorHttp, upstream: Upstream, body: bytes):
    upstream.respond_with(plain(200, body))

    with pytest.raises(Garbled):
        await transcribed(http, upstream)


async def test_refused_transcriptions_have_a_reason(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(refusing(400, "Invalid file format."))

    with pytest.raises(Refused, match=r"local_audio answered 400: Invalid file format\.$"):
        await transcribed(http, upstream)


def test_options_of_a_recognizer_are_checked_when_it_is_made():
    with pytest.raises(InvalidParameter, match="response_format must be one of"):
        OpenAITranscription(None, Account("a", "b", "c"), RecognitionSpec("m", {"response_format": "srt"}))  # type: ignore[arg-type]


def event(**value: Any) -> bytes:
    return b"data: %b\n\n" % dumps(value)


def audio(raw: bytes) -> bytes:
    return event(type="speech.audio.delta", audio=b64encode(raw).decode())


SHAPES = event(
    type="speech.audio.phonemes", phonemes=[{"phoneme": "m", "offset_ms": 0}, {"phoneme": "a", "offset_ms": 90}]
)
DONE = event(type="speech.audio.done", usage={"input_tokens": 5, "output_tokens": 0})


async def collect(http: VendorHttp, upstream: Upstream, into: list[SpeechItem], **spec: Any) -> None:
    client = LocalSpeech(http, account(upstream), SpeechSpec(**{"model": "tts-1", **spec}))
    async with client.speak("Hello") as items:
        async for item in items:
            into.append(item)  # noqa: PERF401 - kept when reading fails, too


async def spoken(http: VendorHttp, upstream: Upstream, **spec: Any) -> list[SpeechItem]:
    items: list[SpeechItem] = []
    await collect(http, upstream, items, **spec)
    return items


async def test_speech_is_sent_while_it_is_synthesized(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(
        streaming([SHAPES, audio(b"\0\1"), event(type="unknown"), audio(b"\2"), DONE, b"data: [DONE]\n\n"])
    )

    first, shapes, *rest = await spoken(http, upstream, voice="af", speed=1.5)

    assert first == SpeechFormat("audio/mpeg", 22_050)
    assert isinstance(shapes, Visemes)
    assert [viseme.offset_ms for viseme in shapes.visemes] == [0, 90]
    assert rest == [AudioBytes(b"\0\1"), AudioBytes(b"\2"), Usage(5, 0)]
    assert loads(upstream.seen[0].body) == {
        "model": "tts-1",
        "speed": 1.5,
        "response_format": "mp3",
        "stream_format": "sse",
        "voice": "af",
        "input": "Hello",
    }


@pytest.mark.parametrize(
    ("spec", "voice"),
    [
        ({"language_code": "cmn_Hans_CN"}, "zh-Hans-CN"),
        ({"language_code": "de", "voice": "en-us"}, "en-us"),
        ({"language_code": "und"}, None),
    ],
)
async def test_the_language_chooses_the_voice_if_none_is_set(
    http: VendorHttp, upstream: Upstream, spec: dict[str, str], voice: str | None
):
    upstream.respond_with(streaming([audio(b"\0\1"), DONE]))

    await spoken(http, upstream, **spec)

    assert loads(upstream.seen[0].body).get("voice") == voice


async def test_wav_is_requested_as_pcm_with_the_vendors_rate(http: VendorHttp, upstream: Upstream):
    events = b"".join([audio(b"\0\1"), DONE])
    upstream.respond_with(plain(200, events, Content_Type="text/event-stream", X_Sample_Rate="16000"))

    items = await spoken(http, upstream, audio_format="wav")

    assert items[0] == SpeechFormat("audio/wav", 16_000)
    assert loads(upstream.seen[0].body)["response_format"] == "pcm"


@pytest.mark.parametrize(
    "chunk",
    [
        b"data: {\n\n",
        event(type="speech.audio.delta", audio="A"),
        b"data: " + b"x" * (LIMIT_BYTES + 1),
    ],
    ids=lambda chunk: repr(chunk[:60]),
)
async def test_malformed_output_is_garbled_after_the_preceding_audio(
    http: VendorHttp, upstream: Upstream, chunk: bytes
):
    upstream.respond_with(streaming([audio(b"\1"), chunk, DONE]))
    seen: list[SpeechItem] = []

    with pytest.raises(Garbled, match=r"^backend unavailable: local_audio sent "):
        await collect(http, upstream, seen)

    assert seen[1:] == [AudioBytes(b"\1")]


async def test_errors_inside_a_200_follow_the_preceding_audio(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(streaming([audio(b"\1") + event(error={"message": "out of memory"})]))
    seen: list[SpeechItem] = []

    with pytest.raises(Refused, match="out of memory") as fault:
        await collect(http, upstream, seen)

    assert seen[1:] == [AudioBytes(b"\1")]
    assert fault.value.retryable


@pytest.mark.parametrize("end", [None, cut])
async def test_speech_without_its_end_mark_is_garbled(http: VendorHttp, upstream: Upstream, end: Any):
    upstream.respond_with(streaming([audio(b"\1")], end=end, apart=True))

    with pytest.raises(VendorError) as fault:
        await spoken(http, upstream)

    assert isinstance(fault.value, Garbled)
    assert fault.value.retryable


async def test_speech_of_an_unexpected_type_is_garbled(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(plain(200, b"ID3", Content_Type="audio/mpeg"))

    with pytest.raises(Garbled, match="answered with audio/mpeg, not an event stream"):
        await spoken(http, upstream)


async def test_listener_that_leaves_early_closes_the_vendors_connection(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(streaming([audio(b"\1")], end=hold))
    client = LocalSpeech(http, account(upstream), SpeechSpec("tts-1"))

    async with client.speak("Hello") as items:
        assert isinstance(await anext(items), SpeechFormat)
        assert await anext(items) == AudioBytes(b"\1")

    async with asyncio.timeout(5):
        await upstream.left.wait()
