"""16-bit mono PCM."""

import math
import struct
from functools import cache

RATE = 16_000


def samples(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}h", *values)


@cache
def tone(seconds: float, loudness: int = 8000) -> bytes:
    return samples(*(round(loudness * math.sin(at / 10)) for at in range(round(seconds * RATE))))


def silence(seconds: float) -> bytes:
    return bytes(2 * round(seconds * RATE))
