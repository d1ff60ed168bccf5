"""Identify files that consist of frames without a header, by several frames that follow each other.

A sync word has 8 to 32 bits, and PCM contains any of them. Therefore each frame must be where the one before it
says, and all must agree. Away from the beginning of a file there are more places for a coincidence, so that more
frames are required. Periodic PCM repeats any bytes: its sync words also occur within the first frame, or it repeats
itself with each frame.
"""

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

from streams.audio.mp3 import mp3_header
from streams.audio.signatures import AAC, AC3, DTS, EAC3, LATM, MP2, MP3, MPEG_TS, SBC


class _Frame(NamedTuple):
    size: int
    common: tuple[int, ...]
    """What all frames of a file have in common."""


class _Framing(NamedTuple):
    """How a type marks its frames, and how many headers are required at the beginning and elsewhere."""

    mime_type: str
    sync: re.Pattern[bytes]
    """The beginnings of headers. Those that PCM often contains, and that are invalid, are best left out here."""
    frame: Callable[[bytes, int], _Frame | None]
    at_begin: int
    elsewhere: int


class Identified(NamedTuple):
    """The type of a file, and where it begins."""

    mime_type: str
    begin: int


_MARK_BYTES = 4
_TS_BYTES = (188, 192)
"""The sizes of packets: ISO/IEC 13818-1, 2.4.3.2, and with a time before each one, as cameras write them."""
_TS_SYNC = re.compile(b"G")
_TS_HEADER_BYTES = 5
"""With the length of the adaptation field, if there is one."""
_TS_MAX_ADAPTATION = 183
_TS_PADDING = 0x1FFF
"""The stream of packets without content. Other values of these 13 bits are streams."""
_TS_CONTINUED = 4
_MPEG_1, _LAYER_2 = 3, 2
_MP2_KBPS = {
    _MPEG_1: (32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384),
    2: (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
}
_MPEG_RATES = (44_100, 48_000, 32_000)
_ADTS_BYTES = 7
_MAX_ADTS_BYTES = 2 * 768 + 9
"""The largest AAC frame of two channels (ISO/IEC 13818-7: 6144 bits for each), with its header and checksum."""
_LOAS_BYTES = 3
_AC3_KBPS = (32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512, 576, 640)
_AC3_RATES = (48_000, 44_100, 32_000)
_AC3_SAMPLES = 1536
_DTS_BYTES = 8
_MIN_DTS_BYTES = 96
_SBC_BYTES = 4
_MAX_BIT_POOL = 250
"""Without a bit rate, FFmpeg exceeds this limit of SBC, and writes invalid checksums."""


def framed_type(head: bytes) -> str | None:
    """Return the type whose frames begin with `head`."""
    for framing in _FRAMINGS:
        if _frames_follow(head, 0, framing, framing.at_begin):
            return framing.mime_type
    return None


def cut_type(head: bytes) -> Identified | None:
    """Return the type whose frames begin behind other bytes, such as the rest of a frame, or of a packet."""
    for framing in _FRAMINGS:
        for sync in framing.sync.finditer(head, 1):
            if _frames_follow(head, sync.start(), framing, framing.elsewhere):
                return Identified(framing.mime_type, sync.start())
    for size in _TS_BYTES:
        for sync in _TS_SYNC.finditer(head):
            if _packets_follow(head, sync.start(), size):
                return Identified(MPEG_TS, sync.start())
    return None


def _frames_follow(head: bytes, begin: int, framing: _Framing, count: int) -> bool:
    first = framing.frame(head, begin)
    if first is None or head.find(head[begin : begin + _MARK_BYTES], begin + 1, begin + first.size) >= 0:
        return False
    at, size = begin, first.size
    for _ in range(count - 1):
        at += size
        found = framing.frame(head, at)
        if found is None or found.common != first.common:
            return False
        size = found.size
    rest = head[begin + first.size :]
    return begin == 0 or not head.startswith(rest, begin)


def _packets_follow(head: bytes, begin: int, size: int) -> bool:
    """Require packets whose counters continue. PCM of the same period has the sync byte in each one, too."""
    if head[begin::size].strip(b"G"):
        return False
    counters: dict[int, int] = {}
    continued = 0
    for sync in range(begin, len(head) - _TS_HEADER_BYTES + 1, size):
        stream = int.from_bytes(head[sync + 1 : sync + 3]) & _TS_PADDING
        flags, counter, adaptation = head[sync + 3] >> 4, head[sync + 3] & 15, head[sync + 4]
        has_content = flags & 1
        if flags not in {1, 2, 3} or (flags & 2 and adaptation + has_content > _TS_MAX_ADAPTATION):
            return False
        if not has_content and adaptation != _TS_MAX_ADAPTATION:
            return False
        if stream in counters and stream != _TS_PADDING:
            if counter != (counters[stream] + has_content) % 16:
                return False
            continued += has_content
        counters[stream] = counter
    return continued >= _TS_CONTINUED


def _mp3_frame(head: bytes, at: int) -> _Frame | None:
    header = mp3_header(head, at)
    return _Frame(header.frame_bytes, (head[at + 1], header.sample_rate, header.mono)) if header else None


def _mp2_frame(head: bytes, at: int) -> _Frame | None:
    """Read a header of Layer II (ISO/IEC 11172-3, 2.4.2.3)."""
    if len(head) < at + 4 or head[at] != 0xFF or head[at + 1] & 0xF0 != 0xF0:
        return None
    version, layer = head[at + 1] >> 3 & 3, head[at + 1] >> 1 & 3
    bit_rate, rate, padding = head[at + 2] >> 4, head[at + 2] >> 2 & 3, head[at + 2] >> 1 & 1
    if version not in _MP2_KBPS or layer != _LAYER_2 or bit_rate in {0, 15} or rate == 3:
        return None
    sample_rate = _MPEG_RATES[rate] if version == _MPEG_1 else _MPEG_RATES[rate] // 2
    size = 144_000 * _MP2_KBPS[version][bit_rate - 1] // sample_rate + padding
    return _Frame(size, (head[at + 1], head[at + 2] & 0xFC, head[at + 3] >> 6))


def _adts_frame(head: bytes, at: int) -> _Frame | None:
    """Read a header of AAC (ISO/IEC 13818-7, 6.2). Its first 28 bits are the same in all frames."""
    header = head[at : at + _ADTS_BYTES]
    if len(header) < _ADTS_BYTES or header[0] != 0xFF or header[1] & 0xF6 != 0xF0 or header[2] >> 2 & 15 > 12:
        return None
    size = (header[3] & 3) << 11 | header[4] << 3 | header[5] >> 5
    return _Frame(size, (int.from_bytes(header[:4]) >> 4,)) if _ADTS_BYTES <= size <= _MAX_ADTS_BYTES else None


def _loas_frame(head: bytes, at: int) -> _Frame | None:
    """Read a header of LOAS: a sync word of 11 bits and a size of 13 (ISO/IEC 14496-3, 1.7.2)."""
    if len(head) < at + _LOAS_BYTES or head[at] != 0x56 or head[at + 1] & 0xE0 != 0xE0:
        return None
    return _Frame(_LOAS_BYTES + ((head[at + 1] & 0x1F) << 8 | head[at + 2]), ())


def _ac3_frame(head: bytes, at: int) -> _Frame | None:
    """Read a header of AC-3 (ETSI TS 102 366, 4.4.1)."""
    if len(head) < at + 6 or not head.startswith(b"\x0b\x77", at):
        return None
    rate, code = head[at + 4] >> 6, head[at + 4] & 63
    if head[at + 5] >> 3 > 8 or rate >= len(_AC3_RATES) or code >= 2 * len(_AC3_KBPS):
        return None
    words = _AC3_KBPS[code >> 1] * 1000 * _AC3_SAMPLES // (16 * _AC3_RATES[rate])
    padding = code & 1 if _AC3_RATES[rate] == 44_100 else 0
    return _Frame(2 * (words + padding), (rate, head[at + 5]))


def _eac3_frame(head: bytes, at: int) -> _Frame | None:
    """Read a header of Enhanced AC-3 (ETSI TS 102 366, E.1.2.2)."""
    if len(head) < at + 6 or not head.startswith(b"\x0b\x77", at):
        return None
    version = head[at + 5] >> 3
    return _Frame(2 * ((head[at + 2] & 7) << 8 | head[at + 3]) + 2, (version,)) if 11 <= version <= 16 else None


def _dts_frame(head: bytes, at: int) -> _Frame | None:
    """Read a header of DTS (ETSI TS 102 114, 5.3), whose bytes may be swapped in pairs."""
    header = bytearray(head[at : at + _DTS_BYTES])
    if header.startswith(b"\xfe\x7f\1\x80") and len(header) == _DTS_BYTES:
        header[::2], header[1::2] = header[1::2], header[::2]
    if not header.startswith(b"\x7f\xfe\x80\1") or len(header) < _DTS_BYTES:
        return None
    size = ((header[5] & 3) << 12 | header[6] << 4 | header[7] >> 4) + 1
    return _Frame(size, (head[at], header[4])) if size >= _MIN_DTS_BYTES else None


def _sbc_frame(head: bytes, at: int) -> _Frame | None:
    """Read a header of SBC (Bluetooth A2DP, 12.9), whose sync word is too short without its checksum."""
    if len(head) < at + _SBC_BYTES or head[at] != 0x9C:
        return None
    mode, bit_pool = head[at + 1] >> 2 & 3, head[at + 2]
    blocks, subbands = 4 * (head[at + 1] >> 4 & 3) + 4, 8 if head[at + 1] & 1 else 4
    channels = 1 if mode == 0 else 2
    joined = subbands if mode == 3 else 0
    factors = head[at + _SBC_BYTES : at + _SBC_BYTES + -(-(joined + 4 * subbands * channels) // 8)]
    checked = head[at + 1 : at + 3] + factors
    if bit_pool <= _MAX_BIT_POOL and _sbc_checksum(checked, 16 + joined + 4 * subbands * channels) != head[at + 3]:
        return None
    bits = blocks * bit_pool * (2 if mode == 1 else 1) + joined
    return _Frame(_SBC_BYTES + subbands * channels // 2 + -(-bits // 8), (head[at + 1], bit_pool))


def _sbc_checksum(checked: bytes, bits: int) -> int:
    checksum = 0x0F
    for at in range(min(bits, 8 * len(checked))):
        high = checksum >> 7 ^ checked[at // 8] >> 7 - at % 8 & 1
        checksum = checksum << 1 & 0xFF ^ (0x1D if high else 0)
    return checksum


def _sync(*bytes_of_header: Iterable[int]) -> re.Pattern[bytes]:
    return re.compile(b"".join(b"[%b]" % b"".join(b"\\x%02x" % byte for byte in of) for of in bytes_of_header))


_MPEG_THIRD = [byte for byte in range(0x10, 0xF0) if byte >> 2 & 3 != 3]
"""With a bit rate and a sample rate. In quiet PCM, 0x00 or 0xFF follows the sync word."""
_FRAMINGS = (
    _Framing(MP3, _sync([0xFF], [0xE2, 0xE3, 0xF2, 0xF3, 0xFA, 0xFB], _MPEG_THIRD), _mp3_frame, 2, 3),
    _Framing(MP2, _sync([0xFF], [0xF4, 0xF5, 0xFC, 0xFD], _MPEG_THIRD), _mp2_frame, 2, 3),
    _Framing(AAC, _sync([0xFF], [0xF0, 0xF1, 0xF8, 0xF9]), _adts_frame, 2, 3),
    _Framing(LATM, _sync([0x56], range(0xE0, 0x100)), _loas_frame, 3, 5),
    _Framing(AC3, _sync([0x0B], [0x77]), _ac3_frame, 2, 2),
    _Framing(EAC3, _sync([0x0B], [0x77]), _eac3_frame, 2, 2),
    _Framing(DTS, re.compile(rb"\x7f\xfe\x80\x01|\xfe\x7f\x01\x80"), _dts_frame, 2, 2),
    _Framing(SBC, _sync([0x9C]), _sbc_frame, 4, 5),
)
