"""Google's synthesis: split requests, joined files, and mouth shapes from times."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.audio.mp3 import mp3_duration_ms
from streams.wire.codec import dumps, loads
from tests.vendors.http.upstream import Upstream, plain
from tests.vendors.speech.google_speech import SECOND, account, mp3, said, spoken, wav
from vendors.account import SpeechSpec
from vendors.errors import Garbled, Refused
from vendors.http.transport import VendorHttp
from vendors.protocols import AudioBytes, SpeechFormat, SpeechItem, Viseme, Visemes
from vendors.speech.google_tts import GoogleSpeech, split_text


def voice(http: VendorHttp, upstream: Upstream, **spec: Any) -> GoogleSpeech:
    fields = {"model": "", "voice": "en-US-Neural2-C", "audio_format": "wav", **spec}
    return GoogleSpeech(http, account(upstream.url), SpeechSpec(**fields))


def sound(items: list[SpeechItem]) -> bytes:
    return b"".join(item.audio for item in items if isinstance(item, AudioBytes))


def shapes(items: list[SpeechItem]) -> list[Viseme]:
    return [shape for item in items if isinstance(item, Visemes) for shape in item.visemes]


async def test_wav_is_yielded_without_its_header(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(said(wav()))

    items = await spoken(voice(http, upstream))

    assert items[0] == SpeechFormat("audio/wav", 24_000)
    assert sound(items) == SECOND
    (seen,) = upstream.seen
    assert (seen.path, seen.headers["X-Goog-Api-Key"]) == ("/v1/text:synthesize", "k1")
    assert loads(seen.body) == {
        "input": {"text": "Hello you."},
        "voice": {"languageCode": "en-US", "name": "en-US-Neural2-C"},
        "audioConfig": {"audioEncoding": "LINEAR16", "sampleRateHertz": 24_000},
    }


async def test_requests_contain_the_settings_of_strategy_and_request(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(said(mp3(1)))
    options = {"sample_rate": 16_000, "pitch": -2.0, "volume_gain_db": 3.0, "effects": ["handset-class-device"]}
    of_a_model = {"model": "gemini-2.5-flash-tts", "voice": "Kore", "prompt": "Whisper.", "language_code": "de-DE"}

    items = await spoken(voice(http, upstream, audio_format="mp3", speed=4.0, options=options, **of_a_model))
    await spoken(voice(http, upstream, audio_format="mp3", speed=0.25, voice="", prompt="Whisper."))

    first, second = (loads(seen.body) for seen in upstream.seen)
    assert items[0] == SpeechFormat("audio/mpeg", 24_000), "the format of the response, not the requested one"
    assert first == {
        "input": {"text": "Hello you.", "prompt": "Whisper."},
        "voice": {"languageCode": "de-DE", "name": "Kore", "modelName": "gemini-2.5-flash-tts"},
        "audioConfig": {
            "audioEncoding": "MP3",
            "sampleRateHertz": 16_000,
            "speakingRate": 2.0,
            "pitch": -2.0,
            "volumeGainDb": 3.0,
            "effectsProfileId": ["handset-class-device"],
        },
    }
    assert (second["voice"], second["audioConfig"]["speakingRate"]) == ({"languageCode": "en-US"}, 0.25)
    assert second["input"] == {"text": "Hello you."}, "ordinary voices accept no instructions"


@pytest.mark.parametrize(
    ("name", "language_code", "reported"),
    [
        ("en-US-Neural2-C", "en", "en-US"),
        ("cmn-CN-Wavenet-A", "zh-CN", "cmn-CN"),
        ("es-419-Chirp3-HD-Kore", None, "es-419"),
        ("Kore", "de", "de-DE"),
        ("Kore", "zh-Hans-CN", "cmn-CN"),
        ("Kore", "und", "en-US"),
        ("Kore", "tg-Cyrl-TJ", "tg-TJ"),
        ("", None, "en-US"),
    ],
)
async def test_the_language_of_a_voice_follows_from_its_name(
    http: VendorHttp, upstream: Upstream, name: str, language_code: str | None, reported: str
):
    upstream.respond_with(said(wav()))

    await spoken(voice(http, upstream, voice=name, language_code=language_code))

    assert loads(upstream.seen[0].body)["voice"]["languageCode"] == reported


async def test_marks_before_the_words_give_shapes_before_the_audio(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(said(wav(), 0.1, 0.5, None))

    items = await spoken(voice(http, upstream, need_viseme=True), "Me <&>\n so")

    (seen,) = upstream.seen
    assert seen.path == "/v1beta1/text:synthesize"
    requested = loads(seen.body)
    assert requested["input"] == {
        "ssml": '<speak><mark name="w0"/>Me <mark name="w1"/>&lt;&amp;&gt; <mark name="w2"/>so</speak>'
    }
    assert requested["enableTimePointing"] == ["SSML_MARK"]
    assert [type(item) for item in items[:3]] == [SpeechFormat, Visemes, AudioBytes]
    assert shapes(items) == [Viseme(100, 21), Viseme(233, 4), Viseme(500, 15), Viseme(666, 8), Viseme(1000, 0)]


@pytest.mark.parametrize("spec", [{"voice": "en-US-Chirp3-HD-Charon"}, {"voice": "Kore", "model": "gemini-tts"}])
async def test_voices_without_marks_get_no_marks(http: VendorHttp, upstream: Upstream, spec: dict[str, str]):
    upstream.respond_with(said(wav()))

    items = await spoken(voice(http, upstream, need_viseme=True, **spec))

    assert loads(upstream.seen[0].body)["input"] == {"text": "Hello you."}
    assert shapes(items) == []


async def test_long_texts_are_one_file_from_several_requests(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(said(mp3(1), 0.0), said(mp3(2), 0.0))
    text = "Yes. " * 150 + "Oh! " * 60

    items = await spoken(voice(http, upstream, audio_format="mp3", need_viseme=True), text)

    audio = sound(items)
    assert len(upstream.seen) > 1
    whole_ms = mp3_duration_ms(audio)
    assert whole_ms == pytest.approx(1000 + 2000 * (len(upstream.seen) - 1), abs=150 * len(upstream.seen))
    assert b"Xing" not in audio[1000:]
    assert b"Info" not in audio[1000:]
    offsets = [shape.offset_ms for shape in shapes(items)]
    assert offsets == sorted(offsets)
    assert shapes(items)[-1].viseme_id == 0
    assert 0.9 * whole_ms < offsets[-1] <= whole_ms


@given(
    st.text(max_size=3000)
    | st.lists(st.sampled_from(["word ", "End. ", "句子。", "&&&&", "x" * 200]), max_size=300).map("".join)
)
def test_parts_contain_every_word_and_fit_the_vendors_limit(text: str):
    for marked in (False, True):
        found = split_text(text, marked=marked)
        assert "".join(word for words in found for word in words) == " ".join(text.split())
        assert all(words and len("".join(words).encode()) <= 900 for words in found)


def test_text_is_split_after_a_sentence():
    text = "One two three four. " * 60

    found = split_text(text, marked=False)

    assert len(found) == 2
    assert all("".join(words).rstrip().endswith("four.") for words in found)


@pytest.mark.parametrize(
    "audio",
    [b"no audio", wav(rate=16_000), wav(channels=2), wav(bits=8)],
)
async def test_malformed_audio_messages_are_errors(http: VendorHttp, upstream: Upstream, audio: bytes):
    upstream.respond_with(said(audio))

    with pytest.raises(Garbled, match="audio in another format"):
        await spoken(voice(http, upstream))


@pytest.mark.parametrize(
    "value",
    [
        [],
        1,
        {"audioContent": "?"},
        {"audioContent": 1},
        {"error": 1},
    ],
)
async def test_unknown_answers_are_errors(http: VendorHttp, upstream: Upstream, value: Any):
    upstream.respond_with(plain(200, dumps(value)))

    with pytest.raises(Garbled):
        await spoken(voice(http, upstream, need_viseme=True))


async def test_answer_without_audio_has_none(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(plain(200, b"{}"))

    assert await spoken(voice(http, upstream)) == [SpeechFormat("audio/wav", 24_000)]
    assert await spoken(voice(http, upstream), " ") == []


async def test_error_in_a_good_answer_is_raised(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(plain(200, dumps({"error": {"code": 503, "message": "later", "status": "UNAVAILABLE"}})))

    with pytest.raises(Refused, match="broke off with an error: later") as fault:
        await spoken(voice(http, upstream))
    assert fault.value.retryable
