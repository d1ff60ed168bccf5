"""Formats other than PCM are refused at their first bytes. Silence and clipping are refused at the end."""

import struct
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.audio.audio import wav_header
from streams.audio.formats import SNIFF_BYTES
from streams.audio.pcm import PcmDecoder
from streams.wire.errors import InvalidParameter
from tests.streams.audio.mp3_files import plain_mp3, tagged_mp3
from tests.streams.audio.pcm_samples import RATE, samples, silence, tone
from tests.streams.audio.wav_files import fmt, wav
from tests.streams.pieces import by_byte, split

WANTED = "send PCM, 16000 Hz, mono, 16 bits"


def decoded(pieces: Sequence[bytes]) -> bytes | str:
    """Return the samples, or the error."""
    decoder = PcmDecoder(RATE)
    try:
        return b"".join([*map(decoder.feed, pieces), decoder.finish()])
    except InvalidParameter as error:
        return error.what


def refused_at(audio: bytes) -> int | None:
    """Return after how many single bytes an error is raised, or None for the end."""
    decoder = PcmDecoder(RATE)
    for count, byte in enumerate(by_byte(audio), 1):
        try:
            decoder.feed(byte)
        except InvalidParameter:
            return count
    return None


GOOD = fmt(1, 1, RATE, 16)
LONG_LIST = (b"LIST", bytes(30_000))
WHOLE = {
    "tone": tone(0.4),
    "quiet, then a tone": silence(1) + tone(0.1),
    "behind a header": wav_header(RATE, data_bytes=len(tone(0.4))) + tone(0.4),
    "behind a header without sizes": wav_header(RATE) + tone(0.4),
    "behind other chunks": wav(GOOD, (b"LIST", b"odd"), data=tone(0.4)),
    "behind a long chunk": wav(GOOD, LONG_LIST, data=tone(0.4)),
    "before other chunks": wav(GOOD, data=tone(0.4)) + b"LIST\x04\0\0\0\xff\x7f\xff\x7f",
    "extensible": wav(
        fmt(0xFFFE, 1, RATE, 16, more=struct.pack("<HHIH", 22, 16, 4, 1) + bytes(14)), data=tone(0.4)
    ),
    "half of it clipped": samples(*[32_767, 10_000] * 4_800),
}
FAULTS = {
    "nothing": (b"", "audio is required"),
    "a sample": (samples(500), "audio is too short"),
    "almost enough": (tone(0.3)[:-2], "audio is too short"),
    "a header alone": (wav_header(RATE), "audio is too short"),
    "a header with little": (wav_header(RATE, data_bytes=9_000) + tone(0.25), "audio is too short"),
    "half a sample": (tone(0.4)[:-1], "audio ends in the middle of a sample"),
    "silence": (silence(0.4), "audio is silent throughout"),
    "noise of the line": (samples(*[255, -256, 90] * 1_600), "audio is silent throughout"),
    "clipping": (
        samples(*[32_767, -32_768, 40, 32_600] * 1_200),
        "audio is clipped: over half of its samples are at full scale",
    ),
    "a header cut short": (wav_header(RATE)[:30], f"audio is a WAV without samples: {WANTED}"),
    "an endless header": (
        wav(GOOD)[:36] + b"LIST\xff\xff\xff\x7f" + tone(0.4),
        f"audio is a WAV without samples: {WANTED}",
    ),
    "ogg": (b"OggS\0\2" + bytes(20_000), f"audio is Ogg: {WANTED}"),
    "a little ogg": (b"OggS", f"audio is Ogg: {WANTED}"),
    "flac": (b"fLaC" + bytes(20_000), f"audio is FLAC: {WANTED}"),
    "mp4 that might be webm": (b"\x1a\x45\xdf\xa3ftypM4A " + bytes(20_000), f"audio is MP4: {WANTED}"),
    "html": (b"<!DOCTYPE html>\n<title>Not found</title>".ljust(2_000), f"audio is an HTML page: {WANTED}"),
    "json": (b'{"error": {"message": "the link has expired"}}' + bytes(2_000), f"audio is a JSON text: {WANTED}"),
    "amr": (b"#!AMR\n" + bytes(20_000), f"audio is AMR: {WANTED}"),
    "mp3": (plain_mp3(), f"audio is MP3: {WANTED}"),
    "mp3 with a tag": (tagged_mp3(), f"audio is MP3: {WANTED}"),
    "stereo": (
        wav(fmt(1, 2, RATE, 16), data=tone(0.4)),
        f"audio is a WAV of PCM, 2 channels, 16000 Hz, 16 bits: {WANTED}",
    ),
    "another rate": (
        wav(fmt(1, 1, 44_100, 16), data=tone(0.4)),
        f"audio is a WAV of PCM, 1 channel, 44100 Hz, 16 bits: {WANTED}",
    ),
    "floats": (
        wav(fmt(3, 1, RATE, 32), data=tone(0.4)),
        f"audio is a WAV of format 3, 1 channel, 16000 Hz, 32 bits: {WANTED}",
    ),
    "a WAV without a format": (
        wav(data=tone(0.4)),
        f"audio is an invalid WAV file (the samples come before the format): {WANTED}",
    ),
}


@pytest.mark.parametrize("name", WHOLE)
def test_only_samples_are_returned(name: str):
    audio = WHOLE[name]
    out = decoded([audio])
    assert isinstance(out, bytes), out
    assert out in audio
    assert len(out) >= 2 * round(0.4 * RATE) or out == audio
    assert decoded(by_byte(audio)) == out


def test_bytes_after_the_announced_samples_are_ignored():
    out = decoded([WHOLE["before other chunks"]])
    assert out == tone(0.4)


@pytest.mark.parametrize("name", FAULTS)
def test_error_names_the_cause(name: str):
    audio, what = FAULTS[name]
    assert decoded([audio]) == what
    assert decoded(by_byte(audio)) == what


@pytest.mark.parametrize(
    ("name", "at_most"),
    [
        ("ogg", 12),
        ("flac", 12),
        ("mp4 that might be webm", 12),
        ("mp3", SNIFF_BYTES),
        ("stereo", 44),
        ("another rate", 44),
        ("floats", 44),
    ],
)
def test_other_formats_are_refused_at_their_first_bytes(name: str, at_most: int):
    audio, _ = FAULTS[name]
    count = refused_at(audio)
    assert count is not None
    assert count <= at_most


@given(
    st.one_of(
        st.sampled_from([*WHOLE.values(), *(audio for audio, _ in FAULTS.values())]),
        st.builds(
            bytes.__add__,
            st.sampled_from([b"", wav_header(RATE), wav_header(RATE, data_bytes=9_700), b"RIFF", b"OggS", b"ID3"]),
            st.builds(
                bytes.__mul__,
                st.binary(min_size=1, max_size=40),
                st.integers(1, 1_000),
            ),
        ),
    ),
    st.lists(st.integers(0, 70_000), max_size=12),
)
def test_any_split_gives_the_same_result(audio: bytes, positions: list[int]):
    assert decoded(split(audio, positions)) == decoded([audio])


@pytest.mark.parametrize(
    ("audio", "audible_s"),
    [
        (tone(1), 0.3),
        (silence(0.3) + tone(0.7), 0.6),
        (silence(0.29) + tone(0.7), 0.3),
        (silence(1) + tone(0.5), 1.2),
        (silence(3), None),
        (tone(0.2), None),
    ],
)
@pytest.mark.parametrize("header", [b"", wav_header(RATE)])
def test_audio_is_audible_from_the_first_window_that_is_not_silent(
    header: bytes, audio: bytes, audible_s: float | None
):
    decoder, heard_s = PcmDecoder(RATE), 0.0
    found = None
    decoder.feed(header)
    for piece in split(audio, range(320, len(audio), 320)):
        decoder.feed(piece)
        heard_s += len(piece) / 2 / RATE
        if decoder.audible and found is None:
            found = heard_s
    assert found == (None if audible_s is None else pytest.approx(audible_s, abs=0.01))
