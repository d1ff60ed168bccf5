"""Read the boxes of MP4 (ISO/IEC 14496-12): whether the file is fragmented, and its duration."""

from collections.abc import Iterator

_HEAD_BYTES = 8
_LONG_HEAD_BYTES = 16


def is_fragmented(mp4: bytes) -> bool:
    """Return whether the samples are in fragments, as in files that are written while they are recorded."""
    return any(
        name == b"moof" or (name == b"moov" and any(child == b"mvex" for child, _, _ in _boxes(mp4, begin, end)))
        for name, begin, end in _boxes(mp4, 0, len(mp4))
    )


def mp4_s(mp4: bytes) -> float | None:
    """Return the duration in seconds, or `None` if the file does not state it, as fragmented files do not."""
    for name, begin, end in _boxes(mp4, 0, len(mp4)):
        if name == b"moov":
            header = next((mp4[at:to] for child, at, to in _boxes(mp4, begin, end) if child == b"mvhd"), b"")
            return _header_s(header)
    return None


def _header_s(header: bytes) -> float | None:
    if len(header) < 32:
        return None
    scale, begin, size = (20, 24, 8) if header[0] == 1 else (12, 16, 4)
    per_second = int.from_bytes(header[scale : scale + 4])
    duration = int.from_bytes(header[begin : begin + size])
    return duration / per_second if per_second and 0 < duration < (1 << 8 * size) - 1 else None


def _boxes(mp4: bytes, begin: int, end: int) -> Iterator[tuple[bytes, int, int]]:
    """Yield the name, and the begin and the end of the content, of each box in a part of the file."""
    at = begin
    while at + _HEAD_BYTES <= end:
        size, head = int.from_bytes(mp4[at : at + 4]), _HEAD_BYTES
        if size == 1:
            size, head = int.from_bytes(mp4[at + 8 : at + 16]), _LONG_HEAD_BYTES
        elif size == 0:
            size = end - at
        if size < head:
            return
        yield mp4[at + 4 : at + 8], at + head, min(at + size, end)
        at += size
