"""Several syntheses become one playable file, both when sent in pieces and when stored."""

import io
import wave

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.clients.strategies import Voice
from actors.synthesis.voice import SpokenFile, voice_attempt
from storage.configs.kinds.speech import Speech
from storage.configs.kinds.strategies import Timeouts
from streams.audio.audio import parse_wav
from streams.audio.mp3 import mp3_duration_ms
from streams.wire.errors import ConfigInvalid
from tests.streams.audio.mp3_files import plain_mp3, played_ms, tagged_mp3, tone
from tests.streams.pieces import split
from vendors.calls.fallback import AllStrategiesFailed, first_success
from vendors.calls.gate import Gate, GatePolicy
from vendors.protocols import AudioBytes, SpeechFormat, Usage, Viseme, Visemes

MP3 = SpeechFormat("audio/mpeg", 24_000)
WAV = SpeechFormat("audio/wav", 16_000)


def spoken(file: SpokenFile, speech_format: SpeechFormat, pieces: list[bytes]) -> bytes:
    """Return the bytes that are sent for one synthesis."""
    file.begin(speech_format)
    return b"".join([file.add_audio(piece) for piece in pieces]) + file.end()


@given(st.lists(st.integers(0, 20_000), max_size=8))
def test_mp3_of_two_sentences_is_sent_and_stored_identically(at: list[int]):
    file = SpokenFile()
    first, second = tagged_mp3(seconds=0.4), tagged_mp3(seconds=0.3)

    sent = spoken(file, MP3, split(first, at)) + spoken(file, MP3, split(second, at))

    assert file.whole() == sent
    assert (file.mime_type, file.empty, file.format) == ("audio/mpeg", False, MP3)
    assert sent.count(b"ID3") + sent.count(b"TAG") + sent.count(b"Xing") + sent.count(b"Info") == 0


def test_mp3_plays_as_long_as_its_sentences():
    file = SpokenFile()
    sentences = [tagged_mp3(seconds=0.4), plain_mp3(seconds=0.3), tagged_mp3(seconds=0.5)]

    sent = b"".join([spoken(file, MP3, [sentence]) for sentence in sentences])

    assert played_ms(sent) == pytest.approx(sum(map(mp3_duration_ms, sentences)), abs=2)


def test_wav_is_streamed_with_unknown_sizes_and_stored_with_the_real_ones():
    file = SpokenFile()
    first, second = tone(seconds=0.1, sample_rate=16_000), tone(seconds=0.2, sample_rate=16_000)

    sent = spoken(file, WAV, [b"", first[:99], first[99:]]) + spoken(file, WAV, [second])

    streamed = parse_wav(sent)
    assert streamed is not None
    assert (streamed.sample_rate, streamed.channels, streamed.bits, streamed.data_bytes) == (16_000, 1, 16, None)
    assert sent[4:8] == sent[40:44] == b"\xff" * 4
    assert sent[44:] == first + second
    with wave.open(io.BytesIO(file.whole())) as kept:
        assert (kept.getframerate(), kept.getnchannels(), kept.getsampwidth()) == (16_000, 1, 2)
        assert kept.readframes(99_999) == first + second
    whole = parse_wav(file.whole())
    assert whole is not None
    assert whole.data_bytes == len(first + second)
    assert file.mime_type == "audio/wav"


def test_the_wav_header_is_sent_only_with_the_first_samples():
    file = SpokenFile()
    file.begin(WAV)

    assert file.add_audio(b"") == b""
    assert file.empty
    assert file.add_audio(b"ab")[:4] == b"RIFF"
    assert file.add_audio(b"cd") == b"cd"
    assert file.end() == b""
    file.begin(WAV)
    assert file.add_audio(b"ef") == b"ef"


@pytest.mark.parametrize("speech_format", [MP3, WAV])
def test_mouth_shapes_of_later_sentences_follow_earlier_audio(speech_format: SpeechFormat):
    file = SpokenFile()
    rate = speech_format.sample_rate
    audio = (
        tone(seconds=0.5, sample_rate=rate) if speech_format is WAV else plain_mp3(seconds=0.5, sample_rate=rate)
    )
    ms = 500 if speech_format is WAV else played_ms(audio)

    file.begin(speech_format)
    assert file.add_visemes([Viseme(0, 1), Viseme(40, 2)]) == [(0, 1), (40, 2)]
    file.add_audio(audio)
    assert file.add_visemes([Viseme(90, 3)]) == [(90, 3)]
    file.end()
    file.begin(speech_format)
    ((offset_ms, viseme_id),) = file.add_visemes([Viseme(10, 4)])
    file.add_audio(audio)
    file.end()
    file.begin(speech_format)
    ((last_ms, _),) = file.add_visemes([Viseme(0, 5)])

    assert viseme_id == 4
    assert offset_ms == pytest.approx(ms + 10, abs=2)
    assert last_ms == pytest.approx(2 * ms, abs=2)
    assert file.visemes == [(0, 1), (40, 2), (90, 3), (offset_ms, 4), (last_ms, 5)]


def test_file_without_audio_is_empty():
    file = SpokenFile()
    assert file.empty
    assert file.whole() == b""

    assert spoken(file, MP3, [b"ID3", b"junk"]) == b""
    assert file.empty


def voice(synthesizer: object) -> Voice:
    config = Speech(account="a", waits=Timeouts(first_output_s=3, between_s=7))
    return Voice(config, "local_audio", synthesizer, need_viseme=False, gate=Gate("a", GatePolicy()))


def test_only_audio_counts_as_output_of_a_voice():
    attempt = voice_attempt("s", voice(None), "Hello")

    assert (attempt.strategy, attempt.stage, attempt.vendor) == ("s", "tts", "local_audio")
    assert (attempt.first_output_s, attempt.between_s) == (3, 7)
    assert attempt.is_output(AudioBytes(b"a"))
    for item in (MP3, AudioBytes(b""), Visemes([Viseme(0, 1)]), Usage(1, 0)):
        assert not attempt.is_output(item)


async def test_unusable_voices_are_failed_attempts():
    attempt = voice_attempt("s", ConfigInvalid("speech s: account is unknown"), "Hello")

    with pytest.raises(AllStrategiesFailed) as failed:
        async with first_success([attempt]):
            raise AssertionError
    (reported,) = failed.value.extra["attempts"]
    assert (reported["strategy"], reported["stage"], reported["error_type"]) == ("s", "tts", "config_invalid")
