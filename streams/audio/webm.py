"""Read the duration of WebM and Matroska from the times of its blocks."""

_EBML, _SCALE, _TIME = 0x1A45DFA3, 0x2AD7B1, 0xE7
_BLOCKS = frozenset({0xA3, 0xA1})
_PARENTS = frozenset({0x18538067, 0x1549A966, 0x1F43B675, 0xA0})
"""Segment, Info, Cluster and BlockGroup: their children are read."""
_DEFAULT_SCALE = 1_000_000
_MAX_ID_BYTES = 4
_MAX_SIZE_BYTES = 8


def webm_s(webm: bytes) -> float | None:
    """Return the time of the last block in seconds, or `None` if the elements cannot be followed to the end.

    Browsers write neither a duration nor the sizes of clusters, because they write while they record. If several
    files follow each other, their durations are added.
    """
    at, scale, cluster, last, total = 0, _DEFAULT_SCALE, 0, 0, 0
    while at < len(webm):
        id_bytes = 9 - webm[at].bit_length()
        size_at = at + id_bytes
        size_bytes = 9 - webm[size_at].bit_length() if size_at < len(webm) else 1
        if id_bytes > _MAX_ID_BYTES or size_bytes > _MAX_SIZE_BYTES:
            return None
        element = int.from_bytes(webm[at:size_at])
        at = size_at + size_bytes
        if element in _PARENTS:
            continue
        unknown = (1 << 7 * size_bytes) - 1
        size = int.from_bytes(webm[size_at:at]) & unknown
        if size == unknown:
            return None
        if element in _BLOCKS:
            last = max(last, cluster + _block_time(webm, at))
        elif element == _TIME:
            cluster = int.from_bytes(webm[at : at + size])
        elif element == _SCALE:
            scale = int.from_bytes(webm[at : at + size])
        elif element == _EBML:
            total, last, cluster, scale = total + last * scale, 0, 0, _DEFAULT_SCALE
        at += size
    return (total + last * scale) / 1e9


def _block_time(webm: bytes, at: int) -> int:
    """Return the time of a block relative to its cluster. It follows the number of the track."""
    begin = at + 9 - webm[at].bit_length() if at < len(webm) else at
    return int.from_bytes(webm[begin : begin + 2], signed=True)
