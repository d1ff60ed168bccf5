"""Identify audio by its first bytes: containers, the codec in them, and texts that are sent instead of audio."""

import codecs
import struct
from collections.abc import Callable

from streams.audio.audio import PCM, format_tag
from streams.audio.mp3 import HEADER_BYTES, MAX_FRAME_BYTES, id3v2_bytes, mp3_header

WAV = "audio/wav"
OGG = "audio/ogg"
FLAC = "audio/flac"
MP4 = "audio/mp4"
WEBM = "audio/webm"
MP3 = "audio/mpeg"
AMR = "audio/amr"
AMR_WB = "audio/amr-wb"
AAC = "audio/aac"
CAF = "audio/x-caf"
AIFF = "audio/aiff"
RF64 = "audio/x-rf64"
WMA = "audio/x-ms-wma"
SILK = "audio/silk"
HTML = "text/html"
XML = "application/xml"
JSON = "application/json"

NAMES = {
    "audio/pcm": "PCM",
    WAV: "WAV",
    OGG: "Ogg",
    FLAC: "FLAC",
    MP3: "MP3",
    MP4: "MP4",
    WEBM: "WebM",
    AMR: "AMR",
    AMR_WB: "AMR-WB",
    AAC: "AAC",
    CAF: "CAF",
    AIFF: "AIFF",
    RF64: "RF64",
    WMA: "WMA",
    SILK: "SILK",
    HTML: "an HTML page",
    XML: "an XML document",
    JSON: "a JSON text",
}
"""How messages call the types, in the order in which they list them."""

PCM_16 = "16-bit PCM"
MULAW = "mu-law"
OPUS = "Opus"
FRAGMENTED = "fragmented"
OTHER = "another codec"

_ADTS_BYTES = 7
_MAX_ADTS_BYTES = 2 * 768 + 9
"""The largest AAC frame of two channels (ISO/IEC 13818-7: 6144 bits for each), with its header and checksum."""

SNIFF_BYTES = max(MAX_FRAME_BYTES + HEADER_BYTES, _MAX_ADTS_BYTES + _ADTS_BYTES)
"""`sniff` needs at most this many bytes: more bytes do not change its result."""

_MAGIC = (
    (0, b"OggS", OGG),
    (0, b"fLaC", FLAC),
    (4, b"ftyp", MP4),
    (0, b"\x1a\x45\xdf\xa3", WEBM),
    (0, b"#!AMR-WB", AMR_WB),  # RFC 4867, 5.1
    (0, b"#!AMR", AMR),
    (0, b"caff\0\1\0\0", CAF),
    (0, b"#!SILK_V3", SILK),
    (0, b"\2#!SILK_V3", SILK),  # Written by messengers.
    (0, bytes.fromhex("3026b2758e66cf11a6d900aa0062ce6c"), WMA),  # The GUID of ASF's header.
)
_FORMS = (
    (b"RIFF", b"WAVE", WAV),
    (b"RF64", b"WAVE", RF64),  # ITU-R BS.2088, which also defines BW64
    (b"BW64", b"WAVE", RF64),
    (b"FORM", b"AIFF", AIFF),
    (b"FORM", b"AIFC", AIFF),
)
"""The words at 0 and at 8. The size is between them."""
_MARKUP = ((b"<!doctype", HTML), (b"<html", HTML), (b"<?xml", XML))
_BLANK = b" \t\r\n"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_TEXT_BYTES = 32
"""How many bytes must be text after an opening brace. In PCM, a sample may look like one."""


def sniff(head: bytes) -> str | None:
    """Return the MIME type of the audio or text that begins with `head`, or `None` for raw PCM.

    `head` must hold the first `SNIFF_BYTES` bytes, or the whole audio if it is shorter.
    """
    for first, second, mime_type in _FORMS:
        if head.startswith(first) and head.startswith(second, 8):
            return mime_type
    for at, magic, mime_type in _MAGIC:
        if head.startswith(magic, at):
            return mime_type
    if id3v2_bytes(head) or _two_mp3_frames(head):
        return MP3
    return AAC if _two_adts_frames(head) else _text_type(head)


def codec_of(head: bytes, mime_type: str) -> str:
    """Return the codec, if recognizers differ in the codecs of this type, or an empty string if it is unknown.

    For MP4, this is `FRAGMENTED` if the header says so, whatever the codec is.
    """
    find = _CODECS.get(mime_type)
    return find(head) if find else ""


def _two_mp3_frames(head: bytes) -> bool:
    """Require two matching headers, because quiet PCM can begin with bytes that look like one header."""
    first = mp3_header(head)
    second = mp3_header(head, first.frame_bytes) if first else None
    return first is not None and second is not None and second.continues(first)


def _two_adts_frames(head: bytes) -> bool:
    """Require two headers with the same fixed part (ISO/IEC 13818-7, 6.2), the second where the first one says."""
    size = _adts_bytes(head)
    second = head[size : size + _ADTS_BYTES] if size else b""
    return bool(_adts_bytes(second)) and _fixed_part(second) == _fixed_part(head)


def _adts_bytes(head: bytes) -> int:
    """Return the size of the frame whose header is at the beginning, or 0 if there is none."""
    if len(head) < _ADTS_BYTES or head[0] != 0xFF or head[1] & 0xF6 != 0xF0 or head[2] >> 2 & 15 > 12:
        return 0
    size = (head[3] & 3) << 11 | head[4] << 3 | head[5] >> 5
    return size if _ADTS_BYTES <= size <= _MAX_ADTS_BYTES else 0


def _fixed_part(header: bytes) -> int:
    return int.from_bytes(header[:4]) >> 4


def _text_type(head: bytes) -> str | None:
    text = head.removeprefix(_BYTE_ORDER_MARK).lstrip(_BLANK)
    begin = text[:16].lower()
    for magic, mime_type in _MARKUP:
        if begin.startswith(magic):
            return mime_type
    is_object = text.startswith(b"{") and text[1:].lstrip(_BLANK).startswith(b'"')
    return JSON if is_object and _is_text(text[:_TEXT_BYTES]) else None


def _is_text(raw: bytes) -> bool:
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(raw)
    except UnicodeDecodeError:
        return False
    return len(raw) == _TEXT_BYTES and "".join(text.split()).isprintable()


def _wav_codec(head: bytes) -> str:
    at = head.find(b"fmt ", 12) + 8
    tag = format_tag(head[at:]) if at >= 8 else None
    if tag is None:
        return ""
    (bits,) = struct.unpack_from("<H", head, at + 14)
    return {(PCM, 16): PCM_16, (7, 8): MULAW}.get((tag, bits), OTHER)


def _ogg_codec(head: bytes) -> str:
    return OPUS if b"OpusHead" in head[:128] else OTHER


def _webm_codec(head: bytes) -> str:
    return OPUS if b"A_OPUS" in head else OTHER if b"A_" in head else ""


def _mp4_codec(head: bytes) -> str:
    return FRAGMENTED if b"mvex" in head or b"moof" in head else ""


_CODECS: dict[str, Callable[[bytes], str]] = {
    WAV: _wav_codec,
    OGG: _ogg_codec,
    WEBM: _webm_codec,
    MP4: _mp4_codec,
}
