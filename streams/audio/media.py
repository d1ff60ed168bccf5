"""Identifies images, sounds, videos and PDF documents by their first bytes."""

from streams.audio.formats import FLAC, MP3, OGG, SNIFF_BYTES, WAV, WEBM, sniff

HEAD_BYTES = SNIFF_BYTES
"""`media_type` needs at most this many bytes."""

_MAGIC = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
)
_AUDIO = frozenset({WAV, OGG, FLAC, WEBM, MP3})
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
    for magic, found in _MAGIC:
        if head.startswith(magic):
            return found
    if head.startswith(b"RIFF") and head.startswith(b"WEBP", 8):
        return "image/webp"
    if head.startswith(b"ftyp", 4):
        brand = head[8:12]
        return "video/mp4" if brand in _VIDEO_BRANDS else "audio/mp4" if brand in _AUDIO_BRANDS else None
    sound = sniff(head)
    return sound if sound in _AUDIO else None
