"""Identifies images, sounds, videos and PDF documents by their first bytes."""

from streams.audio.formats import SNIFF_BYTES, sniff
from streams.audio.signatures import FLAC, GIF, JPEG, JPEG_MAGIC, MP3, OGG, PDF, PNG, WAV, WEBM, WEBP

HEAD_BYTES = SNIFF_BYTES
"""`media_type` needs at most this many bytes."""

_STORED = frozenset({PNG, JPEG, GIF, WEBP, PDF, WAV, OGG, FLAC, WEBM, MP3})
"""Only these types of `sniff` are returned, because callers store files of each type that they get."""
_AUDIO_BRANDS = (b"M4A ", b"M4B ")
_VIDEO_BRANDS = (
    b"isom",
    *(b"iso%d" % number for number in range(2, 10)),
    b"mp41",
    b"mp42",
    b"avc1",
    b"M4V ",
    b"dash",
)


def media_type(head: bytes) -> str | None:
    """Return the MIME type of a file that begins with `head`, or `None` for any other.

    `head` must hold the first `HEAD_BYTES` bytes, or the whole file if it is shorter.
    """
    if head.startswith(JPEG_MAGIC):
        return JPEG
    if head.startswith(b"ftyp", 4):
        brand = head[8:12]
        return "video/mp4" if brand in _VIDEO_BRANDS else "audio/mp4" if brand in _AUDIO_BRANDS else None
    found = sniff(head)
    return found if found in _STORED else None
