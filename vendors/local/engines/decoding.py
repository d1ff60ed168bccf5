"""Decodes uploaded audio to samples. The type is detected from its first bytes."""

from typing import TYPE_CHECKING

from streams.audio.formats import sniff
from vendors.local.engines.faults import Fault
from vendors.speech.decoding import SAMPLE_RATE, Stopped, Undecodable, decoded_types
from vendors.speech.decoding import decode as decode_pcm

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_MAX_S = 1_500
_MIN_S = 0.1
_FORMATS = [
    "aac", "aiff", "amr", "caf", "flac", "m4a", "mp3", "mp4", "mpeg", "mpga", "ogg", "rf64", "wav", "webm", "wma",
]  # fmt: skip


def decode(audio: bytes) -> "NDArray[np.float32]":
    """Decode `audio` to 16 kHz mono samples from -1 to 1. Broken frames are skipped."""
    import numpy as np  # noqa: PLC0415 - an extra

    mime_type = sniff(audio)
    if mime_type is None or mime_type not in decoded_types():
        raise _bad_audio()
    try:
        pcm = decode_pcm(audio, mime_type, goes_on=lambda size: size <= _MAX_S * SAMPLE_RATE * 2)
    except Stopped:
        raise _bad_length(f"longer than {_MAX_S} seconds", "audio_too_long") from None
    except Undecodable:
        raise _bad_audio() from None
    if len(pcm) < _MIN_S * SAMPLE_RATE * 2:
        raise _bad_length(f"shorter than {_MIN_S} seconds", "audio_too_short")
    return np.frombuffer(pcm, np.int16).astype(np.float32) / np.float32(32_768)


def _bad_audio() -> Fault:
    return Fault(400, f"Invalid file format. Supported formats: {_FORMATS}", param="file")


def _bad_length(problem: str, code: str) -> Fault:
    return Fault(400, f"The audio is {problem}", param="file", code=code)
