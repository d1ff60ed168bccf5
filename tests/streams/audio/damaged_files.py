"""Files whose headers cannot be true, and files with random damage."""

import random
import struct
from collections.abc import Iterator

from streams.audio.formats import identify
from tests.streams.audio.phone_files import phone_file
from tests.streams.audio.rare_files import dff, dsf, misplaced_moov, rifx
from tests.streams.audio.wav_files import fmt, wav

LOUD = bytes(at * 37 % 251 for at in range(32_000))
HUGE_RATE = 1 << 28
"""In Hz. Also all formats with floating-point rates can state it."""

_EXTENSIBLE = struct.pack("<HHI", 22, 16, 4)
_UNKNOWN_GUID = b"\x99\1" + bytes(14)
_WORDS = (b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", bytes(4), b"\xff\xff\xff\x7f", b"\x10\0\0\0")


def _extended(rate: int) -> bytes:
    """Return a floating-point number of 80 bits, as AIFF has it."""
    exponent = rate.bit_length() - 1
    return struct.pack(">HQ", 16_383 + exponent, rate << 63 - exponent)


_RATES = {
    "aiff": (44_100, _extended),
    "au": (16_000, struct.Struct(">I").pack),
    "caf_pcm": (16_000, struct.Struct(">d").pack),
    "sox": (16_000, struct.Struct("<d").pack),
    **dict.fromkeys(("adpcm", "rf64", "w64", "wav_24", "wav_8", "wav_float"), (16_000, struct.Struct("<I").pack)),
    "mulaw": (8_000, struct.Struct("<I").pack),
}
"""The sample rate that these files have, and how they state it."""
RATED_FILES = tuple(_RATES)


def with_rate(name: str, rate: int) -> bytes:
    """Return a recording whose header states another sample rate."""
    actual, packed = _RATES[name]
    return phone_file(name, seconds=0.25).replace(packed(actual), packed(rate), 1)


UNKNOWN_CODECS = {
    **{f"tag {tag:#06x}": wav(fmt(tag, 1, 16_000, 16), data=LOUD) for tag in (0, 0x99, 0x100, 0x674F)},
    "float of 16 bits": wav(fmt(3, 1, 16_000, 16), data=LOUD),
    "PCM of 0 bits": wav(fmt(1, 1, 16_000, 0), data=LOUD),
    "no GUID": wav(fmt(0xFFFE, 1, 16_000, 16), data=LOUD),
    "unknown GUID": wav(fmt(0xFFFE, 1, 16_000, 16, more=_EXTENSIBLE + _UNKNOWN_GUID), data=LOUD),
}
"""WAV of codecs that FFmpeg does not know."""


def nameless_mp4() -> bytes:
    """Return MP4 whose codec has damaged names."""
    return phone_file("m4a").replace(b"mp4a", b"m\xff4\0").replace(b"esds", b"\1\1\1\1")


def boastful_mp4(samples: int) -> bytes:
    """Return a short MP4 file that claims as many samples, of one byte each, in one chunk."""
    mp4 = bytearray(phone_file("m4a"))
    for name, at, claimed in (("stsz", 8, 1), ("stsz", 12, samples), ("stsc", 16, samples), ("stts", 12, samples)):
        begin = mp4.index(name.encode()) + at
        mp4[begin : begin + 4] = struct.pack(">I", claimed)
    return bytes(mp4)


class Damage:
    """Recordings of many types, with random changes most often near their beginnings."""

    def __init__(self, names: tuple[str, ...], seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311 - repeatable
        recordings = [phone_file(name, seconds=0.15) for name in names]
        self._files = [*recordings, rifx(), dsf(), dff(), misplaced_moov(b"mdat")]

    def made(self, count: int) -> Iterator[tuple[str, bytes]]:
        """Yield the type of each recording, and what is left of it."""
        for _ in range(count):
            file = self._random.choice(self._files)
            found = identify(file)
            assert found is not None
            yield found.mime_type, self._damaged(bytearray(file))

    def _damaged(self, file: bytearray) -> bytes:
        size = self._random.choice((64, 200, 800, len(file)))
        for _ in range(self._random.choice((1, 1, 2, 4, 20))):
            at = self._random.randrange(1, max(min(size, len(file)), 2))
            self._random.choice((self._change, self._change_word, self._remove, self._insert, self._repeat))(
                file, at
            )
        return bytes(file)

    def _change(self, file: bytearray, at: int) -> None:
        file[at : at + 1] = self._random.randbytes(1)

    def _change_word(self, file: bytearray, at: int) -> None:
        file[at : at + 4] = self._random.choice(_WORDS)

    def _remove(self, file: bytearray, at: int) -> None:
        del file[at : self._random.choice((at + self._random.randrange(1, 50), len(file)))]

    def _insert(self, file: bytearray, at: int) -> None:
        file[at:at] = self._random.randbytes(self._random.randrange(1, 50))

    def _repeat(self, file: bytearray, at: int) -> None:
        file[at:at] = file[: self._random.randrange(1, 200)]
