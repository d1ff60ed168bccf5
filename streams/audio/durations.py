"""Read the duration of audio from its container, without decoding it."""

from streams.audio.audio import FLAC, MP3, OGG, WAV, parse_wav, pcm_seconds
from streams.audio.mp3 import id3v2_bytes, mp3_duration_ms

OPUS_RATE = 48_000
_PAGE, _PAGE_TIME = b"OggS", slice(6, 14)
_NO_TIME = (1 << 64) - 1
_STREAMINFO = slice(8, 42)


def duration_s(audio: bytes, mime_type: str) -> float | None:
    """Return the duration in seconds, or `None` if the container does not state it in a place that is read here."""
    match mime_type:
        case _ if mime_type == WAV:
            return _wav_s(audio)
        case _ if mime_type == OGG:
            return ogg_s(audio)
        case _ if mime_type == FLAC:
            return _flac_s(audio)
        case _ if mime_type == MP3:
            return mp3_duration_ms(audio[id3v2_bytes(audio) :]) / 1000
    return None


def ogg_s(ogg: bytes) -> float:
    """Return the duration of Ogg Opus in seconds by its last page with a timestamp. The pre-skip is included."""
    at = ogg.rfind(_PAGE)
    while at >= 0:
        samples = int.from_bytes(ogg[at:][_PAGE_TIME], "little")
        if samples != _NO_TIME:
            return samples / OPUS_RATE
        at = ogg.rfind(_PAGE, 0, at)
    return 0.0


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
