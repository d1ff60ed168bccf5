"""Read the duration of Ogg from the times of its pages."""

import struct

OPUS_RATE = 48_000
_MARK = b"OggS"
_PAGE = struct.Struct("<4sBBQ4s8xB")  # mark, version, flags, time, stream, number and checksum, count of segments
_BEGINS_STREAM = 2
_NO_TIME = (1 << 64) - 1
_CODEC_HEAD_BYTES = 40


def ogg_s(ogg: bytes) -> float:
    """Return the duration in seconds by the last time of each stream. The pre-skip of Opus is included.

    If several files follow each other (a chain, RFC 3533), their durations are added.
    """
    total = 0.0
    rates: dict[bytes, int] = {}
    ends: dict[bytes, float] = {}
    at = ogg.find(_MARK)
    while 0 <= at <= len(ogg) - _PAGE.size:
        _, _, flags, time, stream, count = _PAGE.unpack_from(ogg, at)
        begin = at + _PAGE.size + count
        if flags & _BEGINS_STREAM:
            total, ends = total + max(ends.values(), default=0.0), {}
            rates[stream] = _rate(ogg[begin : begin + _CODEC_HEAD_BYTES])
        elif time != _NO_TIME:
            ends[stream] = time / rates.get(stream, OPUS_RATE)
        at = ogg.find(_MARK, begin + sum(ogg[at + _PAGE.size : begin]))
    return total + max(ends.values(), default=0.0)


def _rate(head: bytes) -> int:
    """Return the unit of a stream's times. Those of Opus are always 48 kHz (RFC 7845)."""
    rate = 0
    if head.startswith(b"\x01vorbis"):
        rate = int.from_bytes(head[12:16], "little")
    elif head.startswith(b"\x7fFLAC"):
        rate = int.from_bytes(head[27:30]) >> 4
    elif head.startswith(b"Speex   "):
        rate = int.from_bytes(head[36:40], "little")
    return rate or OPUS_RATE
