"""Implausible headers are refused before anything is set up for them, and damage is reported as such."""

import subprocess
import sys
from contextlib import suppress

import pytest

from streams.audio.audio import wav_header
from streams.audio.codec import codec_of
from streams.audio.durations import duration_s
from streams.audio.formats import sniff
from tests.streams.audio.damaged_files import (
    HUGE_RATE,
    LOUD,
    RATED_FILES,
    UNKNOWN_CODECS,
    Damage,
    boastful_mp4,
    nameless_mp4,
    with_rate,
)
from tests.streams.audio.mp3_files import plain_mp3
from tests.streams.audio.phone_files import PHONE_TYPES, RARE_TYPES
from vendors.speech.decoding import SAMPLE_RATE, Stopped, Undecodable, decode

MAX_BYTES = 600 * SAMPLE_RATE * 2


def decoded(audio: bytes, mime_type: str) -> bytes:
    return decode(audio, mime_type, goes_on=lambda size: size <= MAX_BYTES)


@pytest.mark.parametrize("rate", [999, HUGE_RATE])
@pytest.mark.parametrize("name", RATED_FILES)
def test_an_implausible_sample_rate_is_named(name: str, rate: int):
    audio = with_rate(name, rate)
    mime_type = sniff(audio)

    assert mime_type is not None
    with pytest.raises(Undecodable, match=f"^has a sample rate of {rate} Hz instead of 1000 to 768000 Hz$"):
        decoded(audio, mime_type)


@pytest.mark.parametrize("rate", [1_000, 768_000])
@pytest.mark.parametrize("name", ["au", "wav_float"])
def test_any_plausible_sample_rate_is_decoded(name: str, rate: int):
    audio = with_rate(name, rate)

    pcm = decoded(audio, sniff(audio) or "")

    assert len(pcm) == pytest.approx(2 * 4_000 * SAMPLE_RATE / rate, rel=0.2)


@pytest.mark.parametrize("channels", [65, 500])
def test_an_implausible_number_of_channels_is_named(channels: int):
    with pytest.raises(Undecodable, match=f"^has {channels} channels instead of 1 to 64$"):
        decoded(wav_header(16_000, channels=channels) + LOUD * 2, "audio/wav")


@pytest.mark.parametrize("audio", UNKNOWN_CODECS.values(), ids=UNKNOWN_CODECS.keys())
def test_a_codec_that_ffmpeg_does_not_know_is_reported(audio: bytes):
    with pytest.raises(Undecodable, match=r"^has an unknown codec$"):
        decoded(audio, "audio/wav")


def test_a_damaged_name_of_a_codec_is_reported():
    with pytest.raises(Undecodable, match=r"^has an unknown codec$"):
        decoded(nameless_mp4(), "audio/mp4")


def test_joined_recordings_are_decoded_although_the_sample_rate_changes():
    first, second = plain_mp3(sample_rate=44_100, kbps=128), plain_mp3(sample_rate=48_000, kbps=128)

    joined = decoded(first + second, "audio/mpeg")

    both = len(decoded(first, "audio/mpeg")) + len(decoded(second, "audio/mpeg"))
    assert len(joined) == pytest.approx(both, rel=0.01)


def test_no_memory_is_reserved_for_claims_of_a_header():
    """An index of 20 million samples has 480 MB. It is decoded by a process that reports how its usage grows."""
    program = """if True:
        import resource, sys
        from vendors.speech.decoding import decode
        audio = sys.stdin.buffer.read()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        try:
            decode(audio, "audio/mp4", goes_on=lambda size: True)
        except ValueError:
            pass
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / before)
    """
    command = [sys.executable, "-c", program]

    ended = subprocess.run(command, input=boastful_mp4(20_000_000), capture_output=True, check=True, timeout=60)

    assert float(ended.stdout) < 4


@pytest.mark.parametrize("count", [300, pytest.param(30_000, marks=pytest.mark.soak)])
def test_any_damage_is_reported_or_skipped(count: int):
    names = (*PHONE_TYPES, *RARE_TYPES, "m4a", "opus", "ogg_flac", "webm", "flac", "adpcm", "mov", "wav_24", "mp3")
    for mime_type, audio in Damage(names, seed=count).made(count):
        with suppress(Undecodable, Stopped):
            assert len(decoded(audio, mime_type)) % 2 == 0
        assert (duration_s(audio, mime_type) or 0) >= 0
        assert isinstance(codec_of(audio, mime_type), str)
