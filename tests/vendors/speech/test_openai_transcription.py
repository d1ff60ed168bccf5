"""Transcription with OpenAI's protocol by models that stream, and the handling of silence."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.input_buffer import InputBuffer
from streams.wire.codec import dumps
from tests.streams.pieces import by_byte, split
from tests.vendors.chat.openai_clients import PCM, account, collect, recognition
from tests.vendors.http.upstream import Upstream, plain, streaming
from vendors.account import Account, RecognitionSpec
from vendors.errors import Garbled, Refused, VendorError
from vendors.http.transport import VendorHttp
from vendors.protocols import AudioFormat, Transcript
from vendors.sandbox.content import mp3, speech
from vendors.sandbox.server import Running
from vendors.speech.openai import OpenAITranscription, TranscriptEvents

TEXT = "Guten Morgen, wie geht es Ihnen?"


async def heard(
    http: VendorHttp, sandbox: Running, audio: bytes, kind: AudioFormat = PCM, *, text: str = TEXT, **spec: Any
) -> list[Transcript]:
    buffer = InputBuffer()
    buffer.write(audio)
    buffer.end()
    requested = RecognitionSpec(**{"model": "gpt-4o-mini-transcribe", **spec})
    client = OpenAITranscription(http, account(sandbox, text=text), requested)
    return await collect(client.transcribe(buffer, kind), [])


async def test_newer_models_stream_text_while_audio_is_uploaded(http: VendorHttp, sandbox: Running):
    *partial, last = await heard(http, sandbox, speech("x" * 30, 16_000), language_code="de-AT", prompt="Tee")

    assert last == Transcript(TEXT, final=True)
    assert [transcript.final for transcript in partial] == [False] * len(partial)
    assert all(TEXT.startswith(transcript.text) for transcript in partial)
    assert sorted(partial, key=lambda transcript: len(transcript.text)) == partial
    (entry,) = sandbox.bill.since()
    assert entry.asked == {
        "model": "gpt-4o-mini-transcribe",
        "response_format": "json",
        "language": "de",
        "prompt": "Tee",
        "stream": "true",
        "seconds": 2.0,
    }
    assert entry.billed == {"audio_tokens": 20, "text_tokens": 1, "output_tokens": 6}


async def test_partial_text_arrives_while_it_is_generated(http: VendorHttp, sandbox: Running):
    items = await collect(recognition()(http, account(sandbox, text="one two three", pace_ms=20)), [])

    assert [item.text for item in items[:2]] == ["one", "one two"]
    assert items[-1] == Transcript("one two three", final=True)


async def test_whisper_answers_in_one_response_with_the_duration(http: VendorHttp, sandbox: Running):
    items = await heard(http, sandbox, speech("x" * 20, 16_000), model="whisper-1")

    assert items == [Transcript(TEXT, final=True, seconds=2)]
    assert next(sandbox.bill.since()).billed == {"seconds": 2}


@pytest.mark.parametrize(
    ("model", "hints"),
    [
        ("gpt-transcribe", {"languages[]": "pt", "prompt": "hint"}),
        ("gpt-4o-transcribe-diarize", {"language": "pt", "chunking_strategy": "auto"}),
        ("gpt-4o-transcribe", {"language": "pt", "prompt": "hint"}),
        ("whisper-1", {"language": "pt", "prompt": "hint"}),
    ],
)
async def test_hints_use_the_parameter_names_of_the_model(
    http: VendorHttp, sandbox: Running, model: str, hints: dict[str, str]
):
    items = await heard(http, sandbox, speech("x" * 600, 16_000), model=model, language_code="pt-BR", prompt="hint")

    assert items[-1].text == TEXT
    reported = next(sandbox.bill.since()).asked
    assert {
        name: reported[name] for name in reported if name not in {"model", "response_format", "stream", "seconds"}
    } == hints


async def test_long_audio_is_uploaded_again_after_a_failure(http: VendorHttp, sandbox: Running):
    buffer = InputBuffer()
    buffer.write(speech("x" * 1_500, 16_000))
    buffer.end()
    to = account(sandbox, fault="unavailable", times=1, retry_after_s=0.002)

    await collect(OpenAITranscription(http, to, RecognitionSpec("whisper-1")).transcribe(buffer, PCM), [])

    assert [entry.asked.get("seconds") for entry in sandbox.bill.since()] == [None, 100.0]


@pytest.mark.parametrize("model", ["whisper-1", "gpt-4o-transcribe"])
async def test_silence_is_an_empty_transcript(http: VendorHttp, sandbox: Running, model: str):
    (item,) = await heard(http, sandbox, bytes(32_000), model=model)

    assert (item.text, item.final) == ("", True)


async def test_mp3_is_passed_on_unchanged(http: VendorHttp, sandbox: Running):
    audio = mp3(speech("x" * 30, 24_000), 24_000)

    await heard(http, sandbox, audio, AudioFormat("audio/mpeg", 0))

    assert next(sandbox.bill.since()).asked["seconds"] == pytest.approx(2.0, abs=0.1)


async def test_too_short_audio_is_refused_with_the_vendors_message(http: VendorHttp, sandbox: Running):
    with pytest.raises(Refused, match="Audio file is too short"):
        await heard(http, sandbox, b"\1\2" * 800)


async def test_streaming_can_be_disabled(http: VendorHttp, sandbox: Running):
    items = await heard(http, sandbox, speech("x" * 30, 16_000), options={"stream": False})

    assert items == [Transcript(TEXT, final=True)]


def segment(text: str, no_speech_prob: Any = 0.01, avg_logprob: Any = -0.2) -> dict[str, Any]:
    return {"id": 0, "text": text, "no_speech_prob": no_speech_prob, "avg_logprob": avg_logprob}


async def verbose(http: VendorHttp, upstream: Upstream, segments: Any) -> Transcript:
    body = {"text": "Thank you. Hello.", "duration": 2.5, "segments": segments}
    upstream.respond_with(plain(200, dumps(body)))
    requested = recognition(model="whisper-1", options={"response_format": "verbose_json"})
    (item,) = await collect(requested(http, Account("main", "vendor_b_audio", upstream.url)), [])
    return item


@pytest.mark.parametrize(
    ("segments", "text"),
    [
        ([segment(" Thank you.", 0.9, -1.2), segment(" Hello.")], "Hello."),
        ([segment(" Thank you.", 0.9, -0.3), segment(" Hello.", 0.2, -1.7)], "Thank you. Hello."),
        ([segment(" Thank you.", 0.9, -1.2)], ""),
        ([], "Thank you. Hello."),
        (None, "Thank you. Hello."),
        ([7, segment("a", 0.9, -1.2)], "Thank you. Hello."),
        ([{}], "Thank you. Hello."),
        ([segment("a", None), segment("b", [0.9], -1.2), segment(" c", "0.9", "-1.2")], "ab"),
    ],
)
async def test_text_that_whisper_invents_for_silence_is_dropped(
    http: VendorHttp, upstream: Upstream, segments: Any, text: str
):
    assert await verbose(http, upstream, segments) == Transcript(text, final=True, seconds=2.5)


def event(**value: Any) -> bytes:
    return b"data: %b\n\n" % dumps(value)


def delta(text: Any) -> bytes:
    return event(type="transcript.text.delta", delta=text, logprobs=[])


def done(text: Any) -> bytes:
    return event(type="transcript.text.done", text=text, usage={"type": "tokens"})


END = b"data: [DONE]\n\n"


@pytest.mark.parametrize("pieces", [[], [delta("a")], [delta("a"), done("a")[:-1]]])
async def test_stream_without_its_end_mark_is_garbled(http: VendorHttp, upstream: Upstream, pieces: list[bytes]):
    upstream.respond_with(streaming(pieces))

    with pytest.raises(Garbled, match="without a final event") as fault:
        await collect(recognition()(http, Account("main", "vendor_b_audio", upstream.url)), [])

    assert fault.value.retryable


def read(pieces: list[bytes]) -> tuple[str, bool, str]:
    """Return the last text, whether it is final, and the error."""
    events = TranscriptEvents("v")
    last = Transcript("", final=False)
    try:
        for piece in pieces:
            last = events.feed(piece) or last
    except VendorError as fault:
        return "", False, str(fault)
    return last.text, last.final, ""


def chunk(text: Any) -> bytes:
    """Return an event in the form of vLLM."""
    return event(object="transcription.chunk", choices=[{"delta": {"content": text}, "finish_reason": None}])


HALVES = [b'data: {"type":"transcript.text.delta","delta":"%b"}\n\n' % half for half in (rb"a\ud83d", rb"\ude00b")]
STREAMS = [
    delta(" Grüß") + delta(" Gott") + done(" Grüß Gott!") + END,
    delta("a") + END,
    delta("a") + event(type="transcript.text.segment", text="a", speaker="A") + done("a") + delta("b"),
    delta("a") + event(error={"message": "no"}),
    delta("a") + b"data: {\n\n",
]


@given(st.sampled_from(STREAMS), st.lists(st.integers(0, 300), max_size=8))
def test_events_are_the_same_for_every_split(stream: bytes, at: list[int]):
    assert read(split(stream, at)) == read([stream]) == read(by_byte(stream))


@pytest.mark.parametrize(
    ("stream", "reported"),
    [
        (STREAMS[0], ("Grüß Gott!", True, "")),
        (STREAMS[1], ("a", True, "")),
        (STREAMS[2], ("a", True, "")),
        (STREAMS[3], ("", False, "backend unavailable: v broke off with an error: no")),
        (b"data: {\n\n", ("", False, "backend unavailable: v sent a malformed event")),
        (done(None), ("", False, "backend unavailable: v sent a malformed event")),
        (done(""), ("", True, "")),
        (delta("a") + done(None), ("a", True, "")),
        (delta("a") + done(""), ("a", True, "")),
        (delta("a") + delta(7) + b"data: []\n\ndata: \n\n" + done("a b"), ("a b", True, "")),
        (HALVES[0] + HALVES[1] + END, ("a😀b", True, "")),
        (HALVES[0] + END, ("a\ufffd", True, "")),
        (HALVES[0] + done("a😀"), ("a😀", True, "")),
        (chunk("a ") + chunk("b") + event(choices=[]) + END, ("a b", True, "")),
    ],
)
def test_events_are_text_an_end_or_a_fault(stream: bytes, reported: tuple[str, bool, str]):
    assert read([stream]) == reported
