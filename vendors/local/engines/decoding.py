"""Decodes uploaded audio to samples. The container is detected from its first bytes."""

import io
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from streams.audio.formats import FLAC, MP3, MP4, OGG, WAV, WEBM, sniff
from vendors.local.engines.faults import Fault

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SAMPLE_RATE = 16_000
_MAX_S = 1_500
_MIN_S = 0.1
_FORMATS = ["flac", "m4a", "mp3", "mp4", "mpeg", "mpga", "ogg", "wav", "webm"]
_DEMUXERS = {OGG: "ogg", FLAC: "flac", WEBM: "matroska", MP4: "mov", WAV: "wav", MP3: "mp3"}
"""FFmpeg's names. FFmpeg's own detection would also open playlists, which can refer to local files."""


def decode(audio: bytes) -> "NDArray[np.float32]":
    """Decode `audio` to 16 kHz mono samples from -1 to 1. Broken frames are skipped."""
    import av  # noqa: PLC0415 - an extra
    import numpy as np  # noqa: PLC0415 - an extra

    mime_type = sniff(audio)
    if mime_type is None:
        raise _bad_audio()
    pcm = bytearray()
    try:
        with av.open(io.BytesIO(audio), "r", format=_DEMUXERS[mime_type], metadata_errors="ignore") as container:
            for piece in _resampled(container):
                pcm += piece
                if len(pcm) > _MAX_S * SAMPLE_RATE * 2:
                    raise _bad_length(f"longer than {_MAX_S} seconds", "audio_too_long")
    except (av.error.FFmpegError, IndexError):
        raise _bad_audio() from None
    if len(pcm) < _MIN_S * SAMPLE_RATE * 2:
        raise _bad_length(f"shorter than {_MIN_S} seconds", "audio_too_short")
    return np.frombuffer(pcm, np.int16).astype(np.float32) / np.float32(32_768)


def _resampled(container: Any) -> Iterator[bytes]:
    """Yield the first audio stream as 16-bit samples. Raise `IndexError` if there is none."""
    import av  # noqa: PLC0415 - an extra

    resampler = av.AudioResampler("s16", "mono", SAMPLE_RATE)
    for packet in container.demux(container.streams.audio[0]):
        try:
            frames = packet.decode()
        except av.error.InvalidDataError:
            continue
        for frame in frames:
            frame.pts = None  # The resampler rejects invalid timestamps.
            for samples in resampler.resample(frame):
                yield samples.to_ndarray().tobytes()
    for samples in resampler.resample(None):
        yield samples.to_ndarray().tobytes()


def _bad_audio() -> Fault:
    return Fault(400, f"Invalid file format. Supported formats: {_FORMATS}", param="file")


def _bad_length(problem: str, code: str) -> Fault:
    return Fault(400, f"The audio is {problem}", param="file", code=code)
