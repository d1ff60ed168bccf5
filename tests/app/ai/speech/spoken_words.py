"""Speech of a synthesizer, which detectors of voice activity take for speech."""

import pytest

from vendors.local.engines.espeak import Espeak

RATE = 16_000
_spoken: dict[str, bytes] = {}


async def spoken(text: str) -> bytes:
    """Return a text as 16-bit mono PCM of 16 kHz, without the silence before and after it."""
    pytest.importorskip("espeakng_loader")
    np, soxr = pytest.importorskip("numpy"), pytest.importorskip("soxr")
    if text not in _spoken:
        engine = Espeak()
        try:
            async with engine.speak(text, voice=None, speed=1.0) as pieces:
                pcm = b"".join([piece.pcm async for piece in pieces])
        finally:
            engine.close()
        samples = np.trim_zeros(np.frombuffer(pcm, np.int16).astype(np.float32))
        _spoken[text] = soxr.resample(samples, 22_050, RATE).clip(-32_768, 32_767).astype(np.int16).tobytes()
    return _spoken[text]


def silence(ms: int) -> bytes:
    """Return the noise of a quiet room, because digital silence comes from no microphone."""
    return b"\x05\0\xfa\xff" * (ms * RATE // 2000)
