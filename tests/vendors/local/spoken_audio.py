"""Texts read aloud by a local voice, at the sample rate of assessors."""

from collections.abc import Awaitable, Callable

import pytest

from vendors.local.engines.engines import Engines

Reader = Callable[[str], Awaitable[bytes]]
"""Returns the speech of a text as 16-bit mono PCM at 16 kHz."""

REFERENCE = "The quick brown fox jumps over the lazy dog."

_read: dict[str, bytes] = {}


@pytest.fixture
def reader(engines: Engines, needs) -> Reader:
    needs("piper", "pocketsphinx")
    np, soxr = pytest.importorskip("numpy"), pytest.importorskip("soxr")

    async def read(text: str) -> bytes:
        if text not in _read:
            async with engines.voice("piper").speak(text, voice=None, speed=1.0) as spoken:
                pcm = b"".join([piece.pcm async for piece in spoken])
            samples = np.frombuffer(pcm, np.int16).astype(np.float32)
            _read[text] = soxr.resample(samples, 22_050, 16_000).clip(-32_768, 32_767).astype(np.int16).tobytes()
        return _read[text]

    return read
