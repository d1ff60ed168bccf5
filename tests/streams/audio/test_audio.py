"""WAV headers are written and read, in each form that writers use."""

import io
import struct
import wave

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.audio.audio import WavFormat, parse_wav, pcm_seconds, wav_header
from tests.streams.audio.wav_files import fmt, wav


@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize("sample_rate", [8_000, 16_000, 44_100])
def test_header_equals_that_of_the_standard_library(channels: int, sample_rate: int):
    samples = b"\1\2\3\4" * 100
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(channels)
        writer.setsampwidth(2)
        writer.setframerate(sample_rate)
        writer.writeframes(samples)

    assert wav_header(sample_rate, channels=channels, data_bytes=len(samples)) + samples == file.getvalue()


@given(
    st.integers(min_value=1, max_value=2**31),
    st.integers(min_value=1, max_value=8),
    st.sampled_from([8, 16, 24, 32]),
    st.integers(min_value=1, max_value=2**31 - 5000) | st.none(),
)
def test_written_header_is_read_back(rate: int, channels: int, bits: int, data_bytes: int | None):
    rate = rate % 400_000 + 1
    header = wav_header(rate, channels=channels, bits=bits, data_bytes=data_bytes)

    assert parse_wav(header) == WavFormat(1, channels, rate, bits, 44, data_bytes)
    assert all(parse_wav(header[:size]) is None for size in range(44))


def test_streamed_header_has_sizes_of_all_ones():
    header = wav_header(24_000)

    assert header[4:8] == header[40:44] == b"\xff\xff\xff\xff"


@pytest.mark.parametrize("size", [0, 0x7FFF_FFFF, 0xFFFF_FFFF, 0xFFFF_FFFF - 36])
def test_sizes_of_streaming_writers_are_unknown(size: int):
    header = wav_header(16_000)[:40] + struct.pack("<I", size)

    found = parse_wav(header)
    assert found is not None
    assert found.data_bytes is None


def test_other_chunks_are_ignored():
    file = wav(
        (b"JUNK", b"x" * 27),
        fmt(1, 1, 16_000, 16, more=b"\0\0"),
        (b"LIST", b"INFOISFT\x0e\0\0\0Lavf61.7.100\0\0"),
        data=b"ab" * 50,
    )

    found = parse_wav(file)
    assert found is not None
    assert (found.format_tag, found.channels, found.sample_rate, found.bits) == (1, 1, 16_000, 16)
    assert file[found.data_offset :] == b"ab" * 50
    assert found.data_bytes == 100


def test_extensible_header_has_the_format_of_its_samples():
    guid = struct.pack("<HHI", 22, 16, 4) + struct.pack("<H", 3) + bytes.fromhex("000000001000800000aa00389b71")

    found = parse_wav(wav(fmt(0xFFFE, 1, 48_000, 32, more=guid)))
    assert found is not None
    assert (found.format_tag, found.bits) == (3, 32)


@pytest.mark.parametrize(
    "file", [b"OggS" + bytes(40), b"RIFF\0\0\0\0AVI " + bytes(40), wav(), wav((b"fmt ", b"\1\0\1\0"))]
)
def test_invalid_wav_is_refused(file: bytes):
    with pytest.raises(ValueError, match=r"WAV|format"):
        parse_wav(file)


@given(st.binary(max_size=200))
def test_any_bytes_are_parsed_or_refused(noise: bytes):
    try:
        found = parse_wav(b"RIFF\0\0\0\0WAVE" + noise)
    except ValueError:
        return
    assert found is None or found.data_offset <= 12 + len(noise)


def test_duration_of_pcm_is_that_of_its_samples():
    assert pcm_seconds(32_000, 16_000) == 1.0
    assert pcm_seconds(32_000, 16_000, channels=2) == 0.5
    assert pcm_seconds(9_600, 16_000) == 0.3
