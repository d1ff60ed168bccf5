"""The side information of MP3 frames distinguishes sound from silence."""

import random
from array import array

import lameenc
import pytest

from streams.audio.mp3 import Mp3Joiner
from streams.audio.mp3_sound import has_sound
from tests.streams.audio.mp3_files import tagged_mp3, tone

RATES = [8_000, 16_000, 22_050, 24_000, 44_100, 48_000]


def frames_of(pcm: bytes, sample_rate: int, *, channels: int = 1, kbps: int = 64) -> bytes:
    encoder = lameenc.Encoder()
    encoder.silence()
    encoder.set_bit_rate(kbps)
    encoder.set_in_sample_rate(sample_rate)
    encoder.set_out_sample_rate(sample_rate)
    encoder.set_channels(channels)
    joiner = Mp3Joiner()
    return joiner.feed(bytes(encoder.encode(pcm)) + bytes(encoder.flush())) + joiner.end()


def hiss(loudness: int, count: int) -> bytes:
    rng = random.Random(1)  # noqa: S311 - the same hiss every time
    return array("h", (rng.randint(-loudness, loudness) for _ in range(count))).tobytes()


@pytest.mark.parametrize("sample_rate", RATES)
def test_silence_and_faint_noise_are_inaudible(sample_rate: int):
    assert not has_sound(frames_of(bytes(sample_rate), sample_rate))
    assert not has_sound(frames_of(bytes(2 * sample_rate), sample_rate, channels=2))
    assert not has_sound(frames_of(hiss(2, sample_rate // 2), sample_rate))


@pytest.mark.parametrize("kbps", [32, 64])
@pytest.mark.parametrize("sample_rate", RATES)
@pytest.mark.parametrize("hertz", [120, 440, 3_000])
def test_a_tone_is_audible_in_every_encoding(sample_rate: int, hertz: float, kbps: int):
    assert has_sound(frames_of(tone(seconds=0.3, sample_rate=sample_rate, hertz=hertz), sample_rate, kbps=kbps))


def test_quiet_speech_after_silence_is_sound():
    quiet = array("h", (sample // 80 for sample in array("h", tone(seconds=0.2, sample_rate=24_000))))
    assert max(quiet) == 100
    assert has_sound(frames_of(bytes(24_000) + quiet.tobytes(), 24_000))
    assert has_sound(frames_of(hiss(300, 12_000), 24_000))


def test_sound_on_either_channel_is_audible():
    left = array(
        "h", [side for sample in array("h", tone(seconds=0.2, sample_rate=44_100)) for side in (sample, 0)]
    )
    right = array(
        "h", [side for sample in array("h", tone(seconds=0.2, sample_rate=44_100)) for side in (0, sample)]
    )
    assert has_sound(frames_of(left.tobytes(), 44_100, channels=2, kbps=128))
    assert has_sound(frames_of(right.tobytes(), 44_100, channels=2, kbps=128))


def test_frames_of_another_encoder_are_read_and_truncated_ones_ignored():
    joiner = Mp3Joiner()
    frames = joiner.feed(tagged_mp3()) + joiner.end()
    assert has_sound(frames)
    assert not has_sound(b"")
    for size in range(1, 60):
        has_sound(frames[:size])
