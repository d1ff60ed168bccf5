"""Identify audio, and what is sent instead of audio, by its first bytes."""

from streams.audio.framing import Identified, cut_type, framed_type
from streams.audio.mp3 import id3v2_bytes
from streams.audio.signatures import FOREIGN, JPEG, JPEG_MAGIC, MISPLACED, MP3, PE_MAGIC, PROGRAM, signed_type
from streams.audio.texts import text_type

SNIFF_BYTES = 3_200
"""`sniff` needs at most this many bytes: more bytes do not change its result.

They are 0.1 s of PCM, which every recognizer needs. They contain three headers of MP3 of up to 320 kbit/s, wherever
it begins, and more of AAC of usual bit rates.
"""

_MAX_TAGS = 2
_SOI_BYTES = 2
_JPEG_SEGMENTS = frozenset(bytes([marker]) for marker in (*range(0xE0, 0xF0), 0xC0, 0xC2, 0xC4, 0xDB, 0xFE))
_PE_AT = slice(0x3C, 0x40)
"""The place of the offset of the second magic (PE Format, "MS-DOS Stub")."""
_LINE_BREAKS = (b"\r", b"\n")
_BLANK = b" \t\r\n"


def sniff(head: bytes) -> str | None:
    """Return the MIME type of the audio or other file that begins with `head`, or `None` for raw PCM.

    `head` must hold the first `SNIFF_BYTES` bytes, or the whole audio if it is shorter.
    """
    found = identify(head[:SNIFF_BYTES])
    return found.mime_type if found else None


def identify(audio: bytes) -> Identified | None:
    """Return the type of a file and where it begins: behind ID3 tags, unless it is MP3, and behind other bytes.

    `audio` is the whole file, or its beginning. A tag with a picture may be longer than that: then this is `MP3`,
    which has such tags most often.
    """
    tags = 0
    for _ in range(_MAX_TAGS):
        tags += id3v2_bytes(audio, tags)
    found = _untagged(audio[tags : tags + SNIFF_BYTES])
    if not tags:
        return found
    is_other = found is not None and found.mime_type not in FOREIGN | {MP3}
    return Identified(found.mime_type, tags + found.begin) if found and is_other else Identified(MP3, 0)


def _untagged(head: bytes) -> Identified | None:
    at_begin = signed_type(head) or _jpeg_type(head) or _pe_type(head) or framed_type(head) or text_type(head)
    return Identified(at_begin, 0) if at_begin else cut_type(head) or _misplaced(head)


def _misplaced(head: bytes) -> Identified | None:
    """Recognize files behind silence, or behind the line break that careless clients of forms leave there."""
    if not head.startswith((*_LINE_BREAKS, b"\0")):
        return None
    file = head.lstrip(_BLANK if head.startswith(_LINE_BREAKS) else b"\0")
    return Identified(MISPLACED, 0) if signed_type(file) or id3v2_bytes(file) else None


def _jpeg_type(head: bytes) -> str | None:
    """Require that another segment follows the first one, because the signature has only three bytes."""
    if not head.startswith(JPEG_MAGIC) or head[3:4] not in _JPEG_SEGMENTS:
        return None
    next_at = _SOI_BYTES + 2 + int.from_bytes(head[4:6])
    return JPEG if head[next_at : next_at + 1] in {b"\xff", b""} else None


def _pe_type(head: bytes) -> str | None:
    magic_at = int.from_bytes(head[_PE_AT], "little")
    return PROGRAM if head.startswith(PE_MAGIC) and head.startswith(b"PE\0\0", magic_at) else None
