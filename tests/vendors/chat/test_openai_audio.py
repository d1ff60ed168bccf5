"""A chat model as a voice: its instructions, and the check that it reads the text instead of answering it."""

from base64 import b64encode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.wire.codec import dumps, loads
from streams.wire.errors import InvalidParameter
from tests.streams.pieces import by_byte, split
from tests.vendors.chat.openai_clients import TEXT, account, collect, output, spoken_chat
from tests.vendors.http.upstream import Upstream, cut, plain, streaming
from vendors.account import Account, SpeechSpec
from vendors.chat.openai_audio import OpenAIAudio
from vendors.chat.speech_response import SpeechResponseParser
from vendors.errors import Garbled, Refused, VendorError
from vendors.http.transport import VendorHttp
from vendors.protocols import AudioBytes, SpeechFormat, SpeechItem, Usage
from vendors.sandbox.content import mp3, speech
from vendors.sandbox.server import Running

SAMPLES = speech(TEXT, 24_000)
FORMATS = ["mp3", "wav"]


def event(**chunk: Any) -> bytes:
    return b"data: %b\n\n" % dumps(chunk)


def spoken(**audio: Any) -> bytes:
    return event(choices=[{"index": 0, "delta": {"audio": audio}, "finish_reason": None}], usage=None)


def sound(raw: bytes) -> bytes:
    return spoken(data=b64encode(raw).decode())


def finish(reason: str) -> bytes:
    return event(choices=[{"index": 0, "delta": {}, "finish_reason": reason}])


EXPIRES = event(choices=[{"index": 0, "delta": {"audio": {"expires_at": 1_729_018_505}}}])
USAGE = event(choices=[], usage={"prompt_tokens": 9, "completion_tokens": 20})
DONE = b"data: [DONE]\n\n"


def here(upstream: Upstream) -> Account:
    return Account("main", "vendor_b_llm", upstream.url)


async def test_samples_are_streamed_during_the_synthesis(http: VendorHttp, sandbox: Running):
    items = await collect(spoken_chat(audio_format="wav", voice="marin")(http, account(sandbox)), [])

    assert items[0] == SpeechFormat("audio/wav", 24_000)
    assert output(items) == SAMPLES
    assert all(len(item.audio) % 2 == 0 for item in items if isinstance(item, AudioBytes))
    (entry,) = sandbox.bill.since()
    assert entry.asked == {
        "model": "gpt-audio",
        "modalities": ["text", "audio"],
        "audio": {"voice": "marin", "format": "pcm16"},
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    billed = entry.billed
    assert items[-1] == Usage(int(billed["input_tokens"]), int(billed["output_tokens"] + billed["audio_tokens"]))


async def test_every_mp3_frame_is_passed_on(http: VendorHttp, sandbox: Running):
    items = await collect(spoken_chat()(http, account(sandbox)), [])

    assert items[:2] == [SpeechFormat("audio/mpeg", 24_000), AudioBytes(mp3(SAMPLES, 24_000))]
    (entry,) = sandbox.bill.since()
    assert entry.asked["audio"] == {"voice": "alloy", "format": "mp3"}
    assert "stream" not in entry.asked
    billed = entry.billed
    assert items[2:] == [Usage(int(billed["input_tokens"]), int(billed["output_tokens"] + billed["audio_tokens"]))]


async def test_the_model_is_instructed_how_to_read_the_text(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(streaming([DONE]))
    spec = {"prompt": "Softly.", "speed": 1.5, "language_code": "de-AT", "options": {"extra": {"temperature": 0.2}}}

    await collect(spoken_chat(audio_format="wav", options={"check": False})(http, here(upstream)), [])
    await collect(spoken_chat(audio_format="wav", **spec)(http, here(upstream)), [])

    plainly, fully = (loads(seen.body) for seen in upstream.seen)
    assert [message["role"] for message in fully["messages"]] == ["system", "user"]
    assert fully["messages"][1]["content"] == plainly["messages"][1]["content"] == TEXT
    task = plainly["messages"][0]["content"]
    assert "word for word" in task
    assert fully["messages"][0]["content"] == (
        f"{task} The text is in de-AT. Speak at 1.5 times the usual pace. How to speak: Softly."
    )
    assert fully["temperature"] == 0.2


@pytest.mark.parametrize("audio_format", FORMATS)
@pytest.mark.parametrize(
    "text", ["Nobody knows.", "Of course! Boats usually go out with the tide because it carries them."]
)
async def test_answers_instead_of_the_read_text_are_never_spoken(
    http: VendorHttp, sandbox: Running, audio_format: str, text: str
):
    items: list[SpeechItem] = []

    with pytest.raises(Garbled, match="spoke a different text") as fault:
        await collect(spoken_chat(audio_format=audio_format)(http, account(sandbox, text=text)), items)

    assert fault.value.retryable
    assert not [item for item in items if isinstance(item, AudioBytes)]


async def test_short_texts_are_compared_completely(http: VendorHttp, sandbox: Running):
    client = OpenAIAudio(http, account(sandbox, text="Hello there!"), SpeechSpec("gpt-audio", audio_format="wav"))

    with pytest.raises(Garbled, match="spoke a different text"):
        await collect(client.speak("Goodbye."), [])


@pytest.mark.parametrize("audio_format", FORMATS)
async def test_an_incomplete_reading_is_a_failure(http: VendorHttp, sandbox: Running, audio_format: str):
    with pytest.raises(Garbled, match="spoke only a part of the text"):
        await collect(
            spoken_chat(audio_format=audio_format)(http, account(sandbox, text="The boats go out with")), []
        )


@pytest.mark.parametrize("audio_format", FORMATS)
@pytest.mark.parametrize(
    "text",
    [
        "the boats go out WITH the tide -- and nobody's in a hurry to be back",
        "At 3:30 the boats go out with the tide today, yes.",
    ],
)
async def test_a_transcript_may_be_spelt_differently(
    http: VendorHttp, sandbox: Running, audio_format: str, text: str
):
    items = await collect(spoken_chat(audio_format=audio_format)(http, account(sandbox, text=text)), [])

    assert output(items)


@pytest.mark.parametrize("audio_format", FORMATS)
async def test_a_strategy_may_disable_the_transcript_check(http: VendorHttp, sandbox: Running, audio_format: str):
    requested = spoken_chat(audio_format=audio_format, options={"check": False})

    assert output(await collect(requested(http, account(sandbox, text="Nobody knows.")), []))


@pytest.mark.parametrize("audio_format", FORMATS)
async def test_speech_cut_at_the_token_limit_is_a_failure(http: VendorHttp, sandbox: Running, audio_format: str):
    requested = spoken_chat(audio_format=audio_format, options={"extra": {"max_completion_tokens": 9}})

    with pytest.raises(Garbled, match="ran out of tokens"):
        await collect(requested(http, account(sandbox)), [])


@pytest.mark.parametrize("audio_format", FORMATS)
async def test_a_model_without_a_voice_is_refused_with_the_vendors_message(
    http: VendorHttp, sandbox: Running, audio_format: str
):
    with pytest.raises(Refused, match="does not support audio output"):
        await collect(spoken_chat(audio_format=audio_format, model="gpt-4o")(http, account(sandbox)), [])


def test_options_that_do_not_fit_are_refused_when_the_voice_is_made():
    with pytest.raises(InvalidParameter, match="task must not be empty"):
        OpenAIAudio(None, Account("a", "b", "c"), SpeechSpec("gpt-audio", {"task": ""}))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "end", [[EXPIRES], [EXPIRES, USAGE, DONE], [finish("stop")], [DONE], [finish("tool_calls"), DONE]]
)
async def test_normal_ends_are_recognized(http: VendorHttp, upstream: Upstream, end: list[bytes]):
    upstream.respond_with(streaming([spoken(id="audio_1", transcript=TEXT), sound(b"\1\2"), *end]))

    items = await collect(spoken_chat(audio_format="wav")(http, here(upstream)), [])

    assert output(items) == b"\1\2"
    assert (items[-1] == Usage(9, 20)) == (USAGE in end)


async def test_a_cut_after_the_last_audio_loses_only_the_usage(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(streaming([spoken(transcript=TEXT), sound(b"\1\2"), EXPIRES], end=cut, apart=True))

    assert output(await collect(spoken_chat(audio_format="wav")(http, here(upstream)), [])) == b"\1\2"


@pytest.mark.parametrize("message", [{"content": "No."}, {"content": "No.", "audio": None}])
async def test_text_answers_are_not_speech(http: VendorHttp, upstream: Upstream, message: dict[str, Any]):
    upstream.respond_with(plain(200, dumps({"choices": [{"message": message}]}), Content_Type="application/json"))

    with pytest.raises(Garbled, match="answered with text"):
        await collect(spoken_chat()(http, here(upstream)), [])


@pytest.mark.parametrize(
    "answer",
    [[], {}, {"choices": []}, {"choices": [{"message": None}]}, {"choices": [{"message": {"audio": {}}}]},
     {"choices": [{"message": {"audio": {"data": "?"}}}]}, {"choices": [{"message": {"audio": {"data": 5}}}]}],
)  # fmt: skip
async def test_malformed_complete_answers_are_garbled(http: VendorHttp, upstream: Upstream, answer: Any):
    upstream.respond_with(plain(200, dumps(answer), Content_Type="application/json"))

    with pytest.raises(Garbled, match="sent a malformed response"):
        await collect(spoken_chat()(http, here(upstream)), [])


def read(pieces: list[bytes], text: str | None = TEXT) -> tuple[bytes, Usage | None, str]:
    """Return the audio of a stream, its usage, and the error that ends it."""
    parser = SpeechResponseParser("v", text)
    audio = b""
    try:
        for piece in pieces:
            audio += parser.feed(piece)
            if parser.done or parser.fault is not None:
                break
        audio += parser.end()
    except VendorError as fault:
        return audio, None, fault.what
    return audio, parser.usage, ""


READ = (
    spoken(id="a", transcript="") + spoken(transcript=TEXT[:30]) + sound(b"\1\2\3") + spoken(transcript=TEXT[30:])
)
STREAMS = [
    READ + sound(b"\4") + EXPIRES + USAGE + DONE,
    READ + sound(b"\4") + finish("stop") + DONE,
    READ + b"data: {\n\n",
    READ + event(error={"message": "Ärger"}) + DONE,
    READ + finish("content_filter"),
    READ,
    spoken(transcript="I am afraid that I cannot do that") + sound(b"\1\2") + DONE,
    sound(b"\1\2") + DONE,
]


@given(st.sampled_from(STREAMS), st.lists(st.integers(0, 900), max_size=8))
def test_streams_are_the_same_for_every_split(stream: bytes, at: list[int]):
    assert read(split(stream, at)) == read([stream]) == read(by_byte(stream))


@pytest.mark.parametrize(
    ("stream", "reported"),
    [
        (STREAMS[0], (b"\1\2\3\4", Usage(9, 20), "")),
        (STREAMS[1], (b"\1\2\3\4", None, "")),
        (STREAMS[2], (b"\1\2", None, "v sent a malformed event")),
        (STREAMS[3], (b"\1\2", None, "v broke off with an error: Ärger")),
        (STREAMS[4], (b"\1\2", None, "v filtered its speech")),
        (STREAMS[5], (b"\1\2", None, "v ended its speech without a final event")),
        (STREAMS[6], (b"", None, "v spoke a different text")),
        (STREAMS[7], (b"\1\2", None, "")),
        (spoken(data="?") + DONE, (b"", None, "v sent a malformed event")),
        (event(choices=[{"delta": {"audio": 7}}]) + STREAMS[0], (b"\1\2\3\4", Usage(9, 20), "")),
        (b"data: \n\ndata: null\n\n" + STREAMS[0][:-2] + b" \n\n", (b"\1\2\3\4", Usage(9, 20), "")),
        (STREAMS[1][: -len(DONE)] + event(error={"message": "late"}), (b"\1\2\3\4", None, "")),
        (b"\xef\xbb\xbf" + STREAMS[0].replace(b"\n", b"\r"), (b"\1\2\3\4", Usage(9, 20), "")),
        (READ + b"ping\n\n" + sound(b"\4") + b'data:  "[DONE]"\n\n', (b"\1\2\3\4", None, "")),
        (READ + event(error={"code": 0, "message": "success"}) + sound(b"\4") + DONE, (b"\1\2\3\4", None, "")),
        (READ + finish("null"), (b"\1\2", None, "v ended its speech without a final event")),
        (READ + finish("network_error") + DONE, (b"\1\2", None, "v broke off its answer: network_error")),
        (READ + finish("max_tokens") + DONE, (b"\1\2", None, "v ran out of tokens in the middle of its speech")),
    ],
)
def test_streams_consist_of_audio_and_an_end_or_an_error(stream: bytes, reported: tuple[bytes, Usage | None, str]):
    assert read([stream]) == reported


def test_audio_is_held_for_a_second_at_most():
    parser = SpeechResponseParser("v", TEXT)
    second = bytes(48_000)

    assert parser.feed(sound(second[:-2])) == b""
    assert parser.feed(sound(b"\1\2\3\4")) == second[:-2] + b"\1\2\3\4"
    assert parser.feed(sound(b"\5\6")) == b"\5\6"


def test_audio_is_not_held_if_any_transcript_is_accepted():
    assert SpeechResponseParser("v", None).feed(sound(b"\1\2")) == b"\1\2"
