"""Identify audio, and what is sent instead of audio, by its first bytes."""

import re

from streams.audio.mp3 import id3v2_bytes, mp3_header
from streams.audio.signatures import (
    AAC,
    JPEG,
    JPEG_MAGIC,
    LATM,
    MISPLACED,
    MP3,
    MPEG_TS,
    signed_type,
)
from streams.audio.texts import text_type

SNIFF_BYTES = 3_200
"""`sniff` needs at most this many bytes: more bytes do not change its result.

They are 0.1 s of PCM, which every recognizer needs. The largest MP3 frame has 1,441 bytes, and AAC of usual bit
rates has several frames in them.
"""

_ADTS_BYTES = 7
_MAX_ADTS_BYTES = 2 * 768 + 9
"""The largest AAC frame of two channels (ISO/IEC 13818-7: 6144 bits for each), with its header and checksum."""
_LOAS_BYTES = 3
_FRAMES = 3
"""How many frames must follow each other where a recording was cut within a frame."""
_TS_BYTES = 188
_TS_PACKETS = 5
_SOI_BYTES = 2
_JPEG_SEGMENTS = frozenset(bytes([marker]) for marker in (*range(0xE0, 0xF0), 0xC0, 0xC2, 0xC4, 0xDB, 0xFE))
_ADTS_SYNC = re.compile(rb"\xff[\xf0\xf1\xf8\xf9]")
_BLANK = b" \t\r\n"


def sniff(head: bytes) -> str | None:
    """Return the MIME type of the audio or other file that begins with `head`, or `None` for raw PCM.

    `head` must hold the first `SNIFF_BYTES` bytes, or the whole audio if it is shorter.
    """
    return signed_type(head) or _jpeg_type(head) or _framed_type(head) or _misplaced_type(head) or text_type(head)


def _framed_type(head: bytes) -> str | None:
    """Return the types whose files are only frames, by several of them."""
    if tag_bytes := id3v2_bytes(head):
        return AAC if _adts_frames(head, tag_bytes, count=2) else MP3
    if _two_mp3_frames(head):
        return MP3
    if _adts_frames(head, 0, count=2) or _adts_frames_follow(head):
        return AAC
    if _loas_frames(head):
        return LATM
    sync_bytes = head[::_TS_BYTES]
    return MPEG_TS if len(sync_bytes) >= _TS_PACKETS and not sync_bytes.strip(b"G") else None


def _misplaced_type(head: bytes) -> str | None:
    """Recognize the line break that careless clients of multipart forms leave before a file."""
    is_file = head[:1] in {b"\r", b"\n"} and signed_type(head.lstrip(_BLANK))
    return MISPLACED if is_file else None


def _jpeg_type(head: bytes) -> str | None:
    """Require that another segment follows the first one, because the signature has only three bytes."""
    if not head.startswith(JPEG_MAGIC) or head[3:4] not in _JPEG_SEGMENTS:
        return None
    next_at = _SOI_BYTES + 2 + int.from_bytes(head[4:6])
    return JPEG if head[next_at : next_at + 1] in {b"\xff", b""} else None


def _two_mp3_frames(head: bytes) -> bool:
    """Require two matching headers, because quiet PCM can begin with bytes that look like one header."""
    first = mp3_header(head)
    second = mp3_header(head, first.frame_bytes) if first else None
    return first is not None and second is not None and second.continues(first)


def _adts_frames_follow(head: bytes) -> bool:
    """Return whether several frames follow the rest of one: the recording was cut off at its beginning."""
    return any(
        _adts_frames(head, sync.start(), count=_FRAMES) for sync in _ADTS_SYNC.finditer(head, 1, _MAX_ADTS_BYTES)
    )


def _adts_frames(head: bytes, at: int, *, count: int) -> bool:
    """Require headers with the same fixed part (ISO/IEC 13818-7, 6.2), each where the one before it says."""
    fixed_part = _fixed_part(head[at : at + _ADTS_BYTES])
    for _ in range(count):
        header = head[at : at + _ADTS_BYTES]
        size = _adts_bytes(header)
        if not size or _fixed_part(header) != fixed_part:
            return False
        at += size
    return True


def _adts_bytes(head: bytes) -> int:
    """Return the size of the frame whose header is at the beginning, or 0 if there is none."""
    if len(head) < _ADTS_BYTES or head[0] != 0xFF or head[1] & 0xF6 != 0xF0 or head[2] >> 2 & 15 > 12:
        return 0
    size = (head[3] & 3) << 11 | head[4] << 3 | head[5] >> 5
    return size if _ADTS_BYTES <= size <= _MAX_ADTS_BYTES else 0


def _fixed_part(header: bytes) -> int:
    return int.from_bytes(header[:4]) >> 4


def _loas_frames(head: bytes) -> bool:
    """Require frames of LOAS, each with a sync word of 11 bits and a size of 13 (ISO/IEC 14496-3, 1.7.2)."""
    at = 0
    for _ in range(_FRAMES):
        if len(head) < at + _LOAS_BYTES or head[at] != 0x56 or head[at + 1] & 0xE0 != 0xE0:
            return False
        at += _LOAS_BYTES + ((head[at + 1] & 0x1F) << 8 | head[at + 2])
    return True
