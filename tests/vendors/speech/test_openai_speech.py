"""Speech synthesis with OpenAI's protocol: requests and responses."""

from base64 import b64encode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.wire.codec import dumps
from streams.wire.errors import InvalidParameter
from tests.streams.pieces import by_byte, split
from tests.vendors.chat.openai_clients import TEXT, account, collect, output, voice
from tests.vendors.http.upstream import Upstream, plain, streaming
from vendors.account import Account, SpeechSpec
from vendors.errors import Garbled, Refused, VendorError
from vendors.http.sse import LIMIT_BYTES
from vendors.http.transport import VendorHttp
from vendors.protocols import AudioBytes, SpeechFormat, SpeechItem, Usage
from vendors.sandbox.content import mp3, speech
from vendors.sandbox.server import Running
from vendors.speech.openai_speech import OpenAISpeech, SpeechEvents
from vendors.speech.samples import Samples

SAMPLES = speech(TEXT, 24_000)


def event(**value: Any) -> bytes:
    return b"data: %b\n\n" % dumps(value)


def audio(raw: bytes) -> bytes:
    return event(type="speech.audio.delta", audio=b64encode(raw).decode())


DONE = event(type="speech.audio.done", usage={"input_tokens": 5, "output_tokens": 7, "total_tokens": 12})
END = b"data: [DONE]\n\n"


async def requested(http: VendorHttp, sandbox: Running, **spec: Any) -> tuple[dict[str, Any], list[SpeechItem]]:
    """Return the request that the vendor got, and the result."""
    items = await collect(voice(**spec)(http, account(sandbox)), [])
    return list(sandbox.bill.since())[-1].asked, items


def upstream_account(upstream: Upstream) -> Account:
    return Account("main", "vendor_b_audio", upstream.url)


async def spoken(http: VendorHttp, upstream: Upstream, **spec: Any) -> list[SpeechItem]:
    return await collect(voice(**spec)(http, upstream_account(upstream)), [])


async def test_events_are_requested_from_models_that_support_them(http: VendorHttp, sandbox: Running):
    reported, items = await requested(http, sandbox, voice="marin", speed=1.5, prompt="Whisper.")

    assert reported == {
        "model": "gpt-4o-mini-tts",
        "input": TEXT,
        "voice": "marin",
        "response_format": "mp3",
        "stream_format": "sse",
        "speed": 1.5,
        "instructions": "Whisper.",
    }
    assert output(items) == mp3(SAMPLES, 24_000)
    billed = list(sandbox.bill.since())[-1].billed
    assert items[-1] == Usage(int(billed["input_tokens"]), int(billed["output_tokens"]))


async def test_old_models_are_asked_for_audio_and_get_no_instructions(http: VendorHttp, sandbox: Running):
    reported, items = await requested(http, sandbox, model="tts-1-hd", prompt="Whisper.", speed=2.0)

    fields = {"model": "tts-1-hd", "voice": "alloy", "response_format": "mp3", "speed": 2.0}
    assert reported == {**fields, "input": TEXT}
    assert output(items) == mp3(speech(TEXT, 24_000, speed=2.0), 24_000)
    assert not [item for item in items if isinstance(item, Usage)]
    assert list(sandbox.bill.since())[-1].billed == {"characters": len(TEXT)}


@pytest.mark.parametrize("model", ["tts-1", "gpt-4o-mini-tts"])
async def test_wav_is_requested_as_pcm(http: VendorHttp, sandbox: Running, model: str):
    reported, items = await requested(http, sandbox, model=model, audio_format="wav")

    assert reported["response_format"] == "pcm"
    assert output(items) == SAMPLES
    assert items[0] == SpeechFormat("audio/wav", 24_000)


async def test_options_choose_the_framing_and_add_fields(http: VendorHttp, sandbox: Running):
    options = {"stream_format": "audio", "extra": {"voice": "sage"}}

    reported, items = await requested(http, sandbox, options=options)

    assert "stream_format" not in reported
    assert reported["voice"] == "sage"
    assert output(items) == mp3(SAMPLES, 24_000)


@pytest.mark.parametrize(
    ("options", "reported"),
    [({"stream_format": "ws"}, "stream_format must be one of"), ({"sample_rate": 1}, "sample_rate ")],
)
def test_options_that_do_not_fit_are_refused_when_the_voice_is_made(options: dict[str, Any], reported: str):
    with pytest.raises(InvalidParameter, match=reported):
        OpenAISpeech(None, Account("a", "b", "c"), SpeechSpec("tts-1", options))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("spec", "reported"),
    [
        ({"model": "tts-9"}, "answered 404: The model `tts-9` does not exist"),
        ({"model": "gpt-4o"}, "answered 404: The model `gpt-4o` is not supported"),
        ({"model": "tts-1", "voice": "marin"}, "answered 400: Invalid value: 'marin'"),
        (
            {"model": "tts-1", "options": {"stream_format": "sse"}},
            "answered 400: Unsupported value: 'stream_format'",
        ),
    ],
)
async def test_refusals_use_the_vendors_message(
    http: VendorHttp, sandbox: Running, spec: dict[str, Any], reported: str
):
    with pytest.raises(Refused) as fault:
        await collect(voice(**spec)(http, account(sandbox)), [])

    assert reported in str(fault.value)
    assert not fault.value.retryable


@pytest.mark.parametrize("content_type", ["audio/mpeg", "audio/mp3", "application/octet-stream"])
async def test_audio_instead_of_events_is_passed_on(http: VendorHttp, upstream: Upstream, content_type: str):
    upstream.respond_with(plain(200, b"ID3...", Content_Type=content_type))

    assert await spoken(http, upstream) == [SpeechFormat("audio/mpeg", 24_000), AudioBytes(b"ID3...")]


@pytest.mark.parametrize("audio_format", ["mp3", "wav"])
@pytest.mark.parametrize("content_type", ["audio/wav", "audio/ogg", "application/json", "text/plain"])
async def test_audio_of_an_unexpected_type_is_garbled(
    http: VendorHttp, upstream: Upstream, audio_format: str, content_type: str
):
    upstream.respond_with(plain(200, b"RIFF", Content_Type=content_type))

    with pytest.raises(Garbled, match=f"answered with {content_type}"):
        await spoken(http, upstream, audio_format=audio_format)


async def test_rate_of_another_vendor_is_set_by_the_strategy(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(plain(200, b"\1\2\3\4", Content_Type="audio/pcm"))

    items = await spoken(http, upstream, audio_format="wav", options={"sample_rate": 22_050})

    assert items[0] == SpeechFormat("audio/wav", 22_050)


@pytest.mark.parametrize(
    "end", [[DONE], [DONE, END], [END], [DONE + END], [b'data: " [DONE]"\n\n'], [b"data:   [done]\n\n"]]
)
async def test_both_end_marks_are_normal_ends(http: VendorHttp, upstream: Upstream, end: list[bytes]):
    upstream.respond_with(streaming([audio(b"\1"), event(type="new"), *end], apart=True))

    items = await spoken(http, upstream)

    assert output(items) == b"\1"
    assert [item for item in items if isinstance(item, Usage)] == ([Usage(5, 7)] if DONE in end[0] else [])


@pytest.mark.parametrize("pieces", [[], [audio(b"\1")], [audio(b"\1"), DONE[:-1]]])
async def test_events_without_an_end_mark_are_garbled(http: VendorHttp, upstream: Upstream, pieces: list[bytes]):
    upstream.respond_with(streaming(pieces))

    with pytest.raises(Garbled, match="without a final event") as fault:
        await spoken(http, upstream)

    assert fault.value.retryable


def read(pieces: list[bytes]) -> tuple[list[SpeechItem], str]:
    """Return the items of the events, and the error that ends them."""
    events = SpeechEvents("v")
    items: list[SpeechItem] = []
    try:
        for piece in pieces:
            for item in events.feed(piece):
                items.append(item)  # noqa: PERF402 - kept when the next one is a fault
    except VendorError as fault:
        return items, str(fault)
    return items, "done" if events.done else "open"


STREAMS = [
    audio(b"\0\1") + audio(b"\2") + DONE + END,
    audio(b"\0\1") + b"data: {\n\n" + DONE,
    audio(b"a") + event(error={"message": "Grüße"}) + DONE,
    b": ping\n\n" + audio(b"a").replace(b"\n\n", b"\r\n\r\n"),
    DONE + audio(b"behind the end"),
]


@given(st.sampled_from(STREAMS), st.lists(st.integers(0, 400), max_size=8))
def test_events_are_the_same_for_every_split(stream: bytes, at: list[int]):
    assert read(split(stream, at)) == read([stream]) == read(by_byte(stream))


@pytest.mark.parametrize(
    "chunk",
    [
        b"data: {\n\n",
        event(type="speech.audio.delta", audio="A"),
        event(type="speech.audio.delta", audio="?!?!"),
        b"data: " + b"x" * (LIMIT_BYTES + 1),
    ],
    ids=lambda chunk: repr(chunk[:60]),
)
def test_malformed_output_is_garbled_after_the_preceding_audio(chunk: bytes):
    items, reported = read([audio(b"\1"), chunk, DONE])

    assert items == [AudioBytes(b"\1")]
    assert reported.startswith("backend unavailable: v sent ")


@pytest.mark.parametrize("coded", ["-_8", "-_8=", "+/8", "+/\n8=\r\n"])
def test_other_forms_of_base64_are_read(coded: str):
    assert read([event(type="speech.audio.delta", audio=coded) + END]) == ([AudioBytes(b"\xfb\xff")], "done")


@pytest.mark.parametrize("usage", [None, {}, [], {"input_tokens": 5}, {"input_tokens": "5", "output_tokens": 7}])
def test_malformed_usage_is_ignored(usage: Any):
    assert read([audio(b"\1") + event(type="speech.audio.done", usage=usage)]) == ([AudioBytes(b"\1")], "done")


@given(st.binary(max_size=200), st.lists(st.integers(0, 200), max_size=8))
def test_samples_are_never_split(pcm: bytes, at: list[int]):
    samples = Samples()

    pieces = [samples.feed(piece) for piece in split(pcm, at)]

    assert all(len(piece) % 2 == 0 for piece in pieces)
    assert b"".join(pieces) == pcm[: len(pcm) // 2 * 2]
