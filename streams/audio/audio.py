"""Read and write WAV headers, compute the duration of PCM."""

import struct
from dataclasses import dataclass

WAV_HEAD_BYTES = 1024 * 1024
"""Upper bound for the header of a valid WAV file. If `parse_wav` finds no samples in this many bytes, give up.

Recorders reserve up to some 100 KB before the samples, and some write pictures there.
"""

PCM = 1
"""WAV format tag of uncompressed integer samples."""
_EXTENSIBLE = 0xFFFE
_STREAMED = 0xFFFF_FFFF
_MIN_STREAMED = 0x7FFF_F000  # Some writers use 0x7FFF_FFFF instead, or subtract the size of the header.
RIFF_BYTES = 12
CHUNK_BYTES = 8
_FMT_BYTES = 16
MAX_FMT_BYTES = 64 * 1024
_EXTENSIBLE_BYTES = 26  # Up to and including the format tag, which is the first field of the GUID.
MIN_SAMPLE_RATE = 1_000
"""Speech at a lower rate cannot be understood. Telephones use 8,000 Hz."""
MAX_SAMPLE_RATE = 768_000
"""The highest rate of recorders for PCM. The costs of resampling grow with the rate in the header."""
MAX_CHANNELS = 64
"""FFmpeg mixes at most 64 channels (`SWR_CH_MAX`)."""


def implausible(sample_rate: int, channels: int) -> str | None:
    """Return what no recording has, as the rest of a sentence about the audio."""
    if not MIN_SAMPLE_RATE <= sample_rate <= MAX_SAMPLE_RATE:
        return f"has a sample rate of {sample_rate} Hz instead of {MIN_SAMPLE_RATE} to {MAX_SAMPLE_RATE} Hz"
    if not 1 <= channels <= MAX_CHANNELS:
        return f"has {channels} channels instead of 1 to {MAX_CHANNELS}"
    return None


@dataclass(frozen=True, slots=True)
class WavFormat:
    """The header of a WAV file. `data_bytes` is `None` if the file was streamed and its size is unknown."""

    format_tag: int
    """Format of the samples. For an extensible header, the tag in its GUID."""
    channels: int
    sample_rate: int
    bits: int
    data_offset: int
    data_bytes: int | None


def parse_wav(head: bytes) -> WavFormat | None:
    """Return the format of the WAV file that begins with `head`, or `None` if `head` ends before the samples.

    Other chunks are skipped. Raises `ValueError` if `head` is not a WAV header, or if the samples come before
    the format.
    """
    if len(head) < RIFF_BYTES:
        return None
    if head[:4] != b"RIFF" or head[8:12] != b"WAVE":
        raise ValueError("not a WAV file")
    fmt: bytes | None = None
    at = RIFF_BYTES
    while len(head) >= at + CHUNK_BYTES:
        name, size = struct.unpack_from("<4sI", head, at)
        at += CHUNK_BYTES
        if name == b"data":
            return wav_format(fmt, data_offset=at, data_bytes=size)
        if name == b"fmt " and size <= MAX_FMT_BYTES:
            fmt = head[at : at + size]
        at += size + size % 2
    return None


def wav_format(fmt: bytes | None, *, data_offset: int, data_bytes: int) -> WavFormat:
    """Return the format by the content of the `fmt ` chunk. Raises `ValueError` if there is none."""
    tag = None if fmt is None else format_tag(fmt)
    if fmt is None or tag is None:
        raise ValueError("the samples come before the format")
    _, channels, sample_rate, _, _, bits = struct.unpack_from("<HHIIHH", fmt)
    return WavFormat(
        format_tag=tag,
        channels=channels,
        sample_rate=sample_rate,
        bits=bits,
        data_offset=data_offset,
        data_bytes=None if data_bytes == 0 or data_bytes >= _MIN_STREAMED else data_bytes,
    )


def format_tag(fmt: bytes) -> int | None:
    """Return the format of the samples by the content of a `fmt ` chunk, or `None` if it is too short."""
    if len(fmt) < _FMT_BYTES:
        return None
    (tag,) = struct.unpack_from("<H", fmt)
    if tag == _EXTENSIBLE and len(fmt) >= _EXTENSIBLE_BYTES:
        (tag,) = struct.unpack_from("<H", fmt, _EXTENSIBLE_BYTES - 2)
    return int(tag)


def wav_header(sample_rate: int, *, channels: int = 1, bits: int = 16, data_bytes: int | None = None) -> bytes:
    """Return the 44-byte WAV header for PCM samples. Without `data_bytes`, the length is marked as unknown."""
    frame_bytes = channels * bits // 8
    riff_bytes = _STREAMED if data_bytes is None else 36 + data_bytes + data_bytes % 2
    return struct.pack(
        "<4sI4s4sIHHIIHH4sI",
        b"RIFF",
        riff_bytes,
        b"WAVE",
        b"fmt ",
        _FMT_BYTES,
        PCM,
        channels,
        sample_rate,
        sample_rate * frame_bytes,
        frame_bytes,
        bits,
        b"data",
        _STREAMED if data_bytes is None else data_bytes,
    )


def pcm_seconds(size_bytes: int, sample_rate: int, *, channels: int = 1, bits: int = 16) -> float:
    """Return the duration of `size_bytes` bytes of PCM in seconds."""
    return size_bytes * 8 / (sample_rate * channels * bits)
