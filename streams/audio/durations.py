"""Read the duration of audio from its container, without decoding it."""

from collections.abc import Callable

from streams.audio.audio import parse_wav, pcm_seconds
from streams.audio.mp3 import id3v2_bytes, mp3_duration_ms
from streams.audio.mp4 import mp4_s
from streams.audio.ogg import ogg_s
from streams.audio.signatures import AMR, AMR_WB, FLAC, MP3, MP4, OGG, WAV, WEBM
from streams.audio.webm import webm_s

_STREAMINFO = slice(8, 42)
_AMR_FRAME_BYTES = (12, 13, 15, 17, 19, 20, 26, 31, 5)
_AMR_WB_FRAME_BYTES = (17, 23, 32, 36, 40, 46, 50, 58, 60, 5)
"""Sizes by type, without the first byte. Frames of other types have no content."""


def duration_s(audio: bytes, mime_type: str) -> float | None:
    """Return the duration in seconds, or `None` if the container does not state it in a place that is read here."""
    read = _READERS.get(mime_type)
    return read(audio[id3v2_bytes(audio) :]) if read else None


def _mp3_s(audio: bytes) -> float:
    return mp3_duration_ms(audio) / 1000


def _amr_s(audio: bytes, begin: int, frame_bytes: tuple[int, ...]) -> float:
    """Count the frames of 20 ms. The type of a frame, in its first byte, determines its size (RFC 4867, 5.3)."""
    frames, at = 0, begin
    while at < len(audio):
        frame_type = audio[at] >> 3 & 15
        at += 1 + (frame_bytes[frame_type] if frame_type < len(frame_bytes) else 0)
        frames += at <= len(audio)
    return frames / 50


def _wav_s(audio: bytes) -> float | None:
    try:
        wav = parse_wav(audio)
    except ValueError:
        return None
    if wav is None or not (wav.channels and wav.sample_rate and wav.bits):
        return None
    available = len(audio) - wav.data_offset
    size = available if wav.data_bytes is None else min(available, wav.data_bytes)
    return pcm_seconds(size, wav.sample_rate, channels=wav.channels, bits=wav.bits)


def _flac_s(audio: bytes) -> float | None:
    info = audio[_STREAMINFO]
    if len(info) < 18:
        return None
    packed = int.from_bytes(info[10:18])  # 20 bits sample rate, 3 bits channels, 5 bits depth, 36 bits sample count
    rate, samples = packed >> 44, packed & ((1 << 36) - 1)
    return samples / rate if rate and samples else None


_READERS: dict[str, Callable[[bytes], float | None]] = {
    WAV: _wav_s,
    OGG: ogg_s,
    FLAC: _flac_s,
    MP3: _mp3_s,
    MP4: mp4_s,
    WEBM: webm_s,
    AMR: lambda audio: _amr_s(audio, len(b"#!AMR\n"), _AMR_FRAME_BYTES),
    AMR_WB: lambda audio: _amr_s(audio, len(b"#!AMR-WB\n"), _AMR_WB_FRAME_BYTES),
}
