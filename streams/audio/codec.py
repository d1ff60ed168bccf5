"""Identify the codec of audio, as far as recognizers differ in the codecs that they accept."""

from collections.abc import Callable

from streams.audio.audio import PCM, parse_wav
from streams.audio.mp3 import id3v2_bytes
from streams.audio.mp4 import is_fragmented
from streams.audio.signatures import FLAC, MP4, OGG, WAV, WEBM

PCM_16 = "16-bit PCM"
MULAW = "mu-law"
OPUS = "Opus"
STEREO = "several channels"
"""WAV of 16-bit PCM, and FLAC, with more than one channel. Speech recognition is made for one."""
FRAGMENTED = "fragmented"
OTHER = "another codec"

_FLAC_CHANNELS = 20
_WEBM_HEAD_BYTES = 4096


def codec_of(audio: bytes, mime_type: str) -> str:
    """Return the codec, if recognizers differ in the codecs of this type, or an empty string if it is unknown.

    `audio` is the whole file, or at least the header of WAV. For MP4, this is `FRAGMENTED` if the file is, whatever
    the codec is.
    """
    find = _CODECS.get(mime_type)
    return find(audio[id3v2_bytes(audio) :]) if find else ""


def _wav_codec(wav: bytes) -> str:
    try:
        header = parse_wav(wav)
    except ValueError:
        return ""
    if header is None:
        return ""
    if not (header.channels and header.sample_rate):
        return OTHER
    if (header.format_tag, header.bits) == (PCM, 16):
        return PCM_16 if header.channels == 1 else STEREO
    return MULAW if (header.format_tag, header.bits, header.channels) == (7, 8, 1) else OTHER


def _flac_codec(flac: bytes) -> str:
    return STEREO if len(flac) > _FLAC_CHANNELS and flac[_FLAC_CHANNELS] >> 1 & 7 else ""


def _ogg_codec(ogg: bytes) -> str:
    return OPUS if b"OpusHead" in ogg[:128] else OTHER


def _webm_codec(webm: bytes) -> str:
    head = webm[:_WEBM_HEAD_BYTES]
    return OPUS if b"A_OPUS" in head else OTHER if b"A_" in head else ""


def _mp4_codec(mp4: bytes) -> str:
    return FRAGMENTED if is_fragmented(mp4) else ""


_CODECS: dict[str, Callable[[bytes], str]] = {
    WAV: _wav_codec,
    FLAC: _flac_codec,
    OGG: _ogg_codec,
    WEBM: _webm_codec,
    MP4: _mp4_codec,
}
