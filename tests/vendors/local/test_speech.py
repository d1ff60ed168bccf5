"""The real voices espeak-ng and piper."""
# ruff: noqa: RUF001 - these are phonetic letters, which look like Latin ones

import base64
import itertools
from typing import Any

import pytest

from streams.audio.audio import parse_wav
from streams.audio.formats import sniff
from streams.audio.mp3 import mp3_duration_ms
from streams.audio.signatures import WAV
from tests.sampling import paired, sampled
from tests.vendors.local.conftest import Local, events, refusal
from vendors.local.engines.engines import Engines
from vendors.speech.visemes import visemes_of

SAID = "Hello there, how are you today? The quick brown fox jumps over the lazy dog. It is a fine day."
ENGINES = ["espeak", "piper"]
SECONDS = (4, 9)
"""The range of plausible durations in seconds."""


def audio_of(seen: list[dict[str, Any]]) -> bytes:
    return b"".join(base64.b64decode(event["audio"]) for event in seen if event["type"] == "speech.audio.delta")


def phonemes_of(seen: list[dict[str, Any]]) -> list[tuple[str, int]]:
    return [
        (phoneme["phoneme"], phoneme["offset_ms"])
        for event in seen
        if event["type"] == "speech.audio.phonemes"
        for phoneme in event["phonemes"]
    ]


def assert_phonemes_come_before_their_audio(seen: list[dict[str, Any]], bytes_per_ms: float) -> None:
    phonemes_ms = audio_ms = 0.0
    for event in seen:
        if event["type"] == "speech.audio.phonemes":
            assert event["phonemes"][0]["offset_ms"] >= audio_ms - 2  # Both are truncated to milliseconds.
            phonemes_ms = event["phonemes"][-1]["offset_ms"]
        elif event["type"] == "speech.audio.delta":
            audio_ms += len(base64.b64decode(event["audio"])) / bytes_per_ms
    assert audio_ms - phonemes_ms < 1_000


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest, needs) -> str:
    needs(request.param)
    return request.param


async def test_phonemes_are_ascending_and_precede_their_audio(local: Local, engine: str) -> None:
    async with local.speech(SAID, engine, response_format="pcm", stream_format="sse") as response:
        assert response.headers["X-Sample-Rate"] == "22050"
        *seen, done = await events(response)
    assert done == {
        "type": "speech.audio.done",
        "usage": {"input_tokens": len(SAID), "output_tokens": 0, "total_tokens": len(SAID)},
    }
    duration_ms = len(audio_of(seen)) / 44.1
    assert SECONDS[0] * 1000 < duration_ms < SECONDS[1] * 1000
    assert_phonemes_come_before_their_audio(seen, 44.1)
    offsets = [offset_ms for _, offset_ms in phonemes_of(seen)]
    assert offsets == sorted(offsets)
    assert offsets[-1] <= duration_ms + 1
    shapes = visemes_of(phonemes_of(seen))
    assert len({shape.viseme_id for shape in shapes}) > 10
    assert 30 < len(shapes) < 100


async def test_audio_is_sent_before_the_synthesis_is_complete(local: Local, engines: Engines, needs) -> None:
    needs("espeak")
    async with engines.voice("espeak").speak(SAID, voice=None, speed=1.0) as spoken:
        first = await anext(spoken)
    assert 0 < len(first.pcm) < 2 * 44_100


@pytest.mark.parametrize(("response_format", "engine"), paired(["mp3", "wav", "pcm"], ENGINES), indirect=["engine"])
async def test_every_format_has_the_expected_duration(local: Local, response_format: str, engine: str) -> None:
    async with local.speech(SAID, engine, response_format=response_format) as response:
        assert response.status == 200
        audio = await response.read()
    if response_format == "mp3":
        assert response.content_type == "audio/mpeg"
        assert b"Xing" not in audio[:500]
        assert b"Info" not in audio[:500]
        seconds = mp3_duration_ms(audio) / 1000
        assert len(audio) == pytest.approx(seconds * 8_000, rel=0.05)
    elif response_format == "wav":
        assert (response.content_type, sniff(audio)) == ("audio/wav", WAV)
        header = parse_wav(audio)
        assert header is not None
        assert (header.sample_rate, header.channels, header.data_bytes) == (22_050, 1, None)
        seconds = (len(audio) - header.data_offset) / 44_100
    else:
        seconds = len(audio) / 44_100
    assert SECONDS[0] < seconds < SECONDS[1]


@pytest.mark.parametrize("engine", sampled(ENGINES, ["espeak"]), indirect=True)
async def test_speed_changes_the_duration(local: Local, engine: str) -> None:
    text = "The quick brown fox."
    lengths = []
    for speed in (0.25, 0.5, 1, 2, 4):
        async with local.speech(text, engine, speed=speed, response_format="pcm") as response:
            assert response.status == 200
            lengths.append(len(await response.read()))
    assert all(1.2 < slow / fast < 3 for slow, fast in itertools.pairwise(lengths))


async def test_espeak_speaks_the_requested_languages(local: Local, needs) -> None:
    needs("espeak")
    heard = {}
    for voice in ("en-us", "en-GB", "de", "de-AT", "fr", "fr-fr", "zh", "cmn-Hans-CN", "en-us+f3"):
        async with local.speech("Station", voice=voice, response_format="pcm", stream_format="sse") as response:
            heard[voice] = [phoneme for phoneme, _ in phonemes_of(await events(response))]
    assert "".join(heard["en-us"]).startswith("stˈeɪʃən")
    assert "".join(heard["de"]).startswith("ʃ")
    assert heard["zh"] == heard["cmn-Hans-CN"]
    assert heard["de"] == heard["de-AT"] != heard["fr"] == heard["fr-fr"]
    assert all(len(phonemes) > 4 for phonemes in heard.values())


@pytest.mark.parametrize(
    ("voice", "engine"),
    paired(["alloy", "nosuch", "f2", "al", "en-us+nobody", "en-us+../f2"], ENGINES),
    indirect=["engine"],
)
async def test_unknown_voice_is_refused(local: Local, engine: str, voice: str) -> None:
    async with local.speech("Hello", engine, voice=voice) as response:
        status, error = await refusal(response)
    assert (status, error["param"]) == (400, "voice")
    async with local.speech("Hello", engine) as response:
        assert response.status == 200
        assert len(await response.read()) > 1_000


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "blank": ({"text": " \n "}, "input"),
    "long": ({"text": "x" * 4097}, "input"),
    "slow": ({"text": "x", "speed": 0.2}, "speed"),
    "opus": ({"text": "x", "response_format": "opus"}, "response_format"),
    "json": ({"text": "x", "stream_format": "json"}, "stream_format"),
}
"""Fields of a request, and the one that is refused."""


@pytest.mark.parametrize(("bad", "engine"), paired([*BAD], ENGINES), indirect=["engine"])
async def test_bad_parameters_are_named(local: Local, engine: str, bad: str) -> None:
    fields, param = BAD[bad]
    async with local.speech(model=engine, **fields) as response:
        status, error = await refusal(response)
    assert (status, error["param"]) == (400, param)


async def test_long_texts_do_not_delay_other_requests(local: Local, engines: Engines, needs) -> None:
    """Requests alternate after each sentence, so the short text is complete long before the long one."""
    needs("espeak")
    voice = engines.voice("espeak")
    async with (
        voice.speak(SAID * 40, voice=None, speed=1.0) as long,
        voice.speak("Hi.", voice=None, speed=1.0) as short,
    ):
        pieces = [await anext(long)]
        assert b"".join([piece.pcm async for piece in short])
        pieces += [piece async for piece in long]
    assert sum(len(piece.pcm) for piece in pieces) > 40 * SECONDS[0] * 44_100


async def test_synthesis_without_a_listener_stops_immediately(engines: Engines, needs) -> None:
    """The text is one slow sentence of four minutes, whose remainder is never spoken."""
    needs("espeak")
    voice = engines.voice("espeak")
    async with voice.speak("la " * 330, voice=None, speed=0.25) as spoken:
        begun = len((await anext(spoken)).pcm)
    assert 0 < begun < 60 * 44_100
    async with voice.speak("Hi.", voice=None, speed=1.0) as spoken:
        assert 0 < sum([len(piece.pcm) async for piece in spoken]) < 2 * 44_100
