"""Detect silence in MP3 frames from their side information, without decoding them."""

from math import log2

from streams.audio.mp3 import HEADER_BYTES, Mp3Header, mp3_header

_MPEG1_SAMPLES = 1152
_CHECKSUM_BYTES = 2
_MAX_VALUES = (
    0, 1, 2, 2, 0, 3, 3, 5, 5, 5, 7, 7, 7, 15, 0, 15,
    *(14 + (1 << bits) for bits in (1, 2, 3, 4, 6, 8, 10, 13, 4, 5, 6, 7, 8, 9, 11, 13)),
)  # fmt: skip
"""The largest value that each Huffman table can encode."""
_UNIT_GAIN = 210
"""The global gain at which a value of 1 means full scale."""
_QUIET_BITS = -11.0
"""A frame is silent if no spectral line exceeds 2**-11 of full scale (-66 dB).

That is a tone with an amplitude of 16 in 16-bit samples, or a faint hiss.
"""


def has_sound(frames: bytes) -> bool:
    """Return whether any of these complete frames may contain sound.

    The side information gives an upper bound for the loudness of a frame. Sound is therefore never classified as
    silence, but quiet noise that is encoded with many bits may be classified as sound.
    """
    at = 0
    while (header := mp3_header(frames, at)) is not None:
        if _loudest_bits(header, frames, at) > _QUIET_BITS:
            return True
        at += header.frame_bytes
    return False


def _loudest_bits(header: Mp3Header, frames: bytes, at: int) -> float:
    """Return an upper bound for the frame's spectral lines, as the base-2 logarithm relative to full scale."""
    mpeg1 = header.samples == _MPEG1_SAMPLES
    channels = 1 if header.mono else 2
    begin = at + HEADER_BYTES + (_CHECKSUM_BYTES if header.protected else 0)
    size = (17 if header.mono else 32) if mpeg1 else (9 if header.mono else 17)
    bits = _Bits(frames[begin : begin + size])
    bits.take((18 if header.mono else 20) if mpeg1 else 8 + channels)
    granules = channels * (2 if mpeg1 else 1)
    return max(_granule_bits(bits, compress_bits=4 if mpeg1 else 9, preflag=mpeg1) for _ in range(granules))


def _granule_bits(bits: "_Bits", *, compress_bits: int, preflag: bool) -> float:
    used, big_values, gain = bits.take(12), bits.take(9), bits.take(8)
    bits.take(compress_bits)
    tables: tuple[int, ...]
    if bits.take(1):  # The granule uses short blocks.
        bits.take(3)
        tables = (bits.take(5), bits.take(5))
        bits.take(9)
    else:
        tables = (bits.take(5), bits.take(5), bits.take(5))
        bits.take(7)
    bits.take(3 if preflag else 2)
    largest = max(_MAX_VALUES[table] for table in tables) if big_values else 1
    if not used or not largest:
        return float("-inf")
    return log2(largest) * 4 / 3 + (gain - _UNIT_GAIN) / 4


class _Bits:
    """Read unsigned integers bit by bit, most significant bit first. Bits after the end are zero."""

    def __init__(self, raw: bytes) -> None:
        self._value = int.from_bytes(raw)
        self._left = len(raw) * 8

    def take(self, count: int) -> int:
        self._left -= count
        return (self._value >> self._left if self._left >= 0 else 0) & ((1 << count) - 1)
