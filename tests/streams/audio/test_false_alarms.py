"""PCM of many kinds is recognized as PCM."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from streams.audio.formats import SNIFF_BYTES, sniff

_COUNT = SNIFF_BYTES // 2
_RATE = 16_000
_AT = np.arange(_COUNT)

Wave = Any
"""An array of `_COUNT` numbers."""


class Sounds:
    """Random recordings of 0.1 s, of each kind in turn."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)
        self._kinds: tuple[Callable[[], Wave], ...] = (
            self._speech, self._fade_in, self._silence, self._noise, self._any_samples, self._quiet, self._tone,
            self._square, self._sawtooth, self._eight_bits,
        )  # fmt: skip

    def made(self, count: int) -> Iterator[tuple[str, bytes]]:
        for at in range(count):
            kind = self._kinds[at % len(self._kinds)]
            yield kind.__name__, np.clip(np.round(kind()), -32_768, 32_767).astype("<i2").tobytes()

    def _amplitude(self) -> float:
        return float(10 ** self._random.uniform(0, 4.51))

    def _hiss(self, most: float) -> Wave:
        return self._random.normal(0, 10 ** self._random.uniform(-1, most), _COUNT)

    def _speech(self) -> Wave:
        """Vowels: harmonics of a pitch that varies, with a hiss and the offset of a microphone."""
        random = self._random
        pitch = random.uniform(70, 320) * (1 + 0.05 * np.sin(2 * np.pi * random.uniform(1, 6) * _AT / _RATE))
        phase = 2 * np.pi * np.cumsum(pitch) / _RATE
        harmonics = range(1, int(random.integers(2, 25)))
        voice = sum(np.sin(k * phase + random.uniform(0, 6)) * random.uniform(0, 1) / k for k in harmonics)
        return voice * self._amplitude() + self._hiss(2.5) + random.choice([0, 0, 0, -1, -20, 5, 130, -257, -1025])

    def _fade_in(self) -> Wave:
        speech = self._speech()
        speech[: self._random.integers(1, _COUNT)] = 0
        return speech

    def _silence(self) -> Wave:
        return np.full(_COUNT, float(self._random.integers(-1_100, 1_100)))

    def _noise(self) -> Wave:
        return self._hiss(4.5) + self._random.choice([0, 0, -1, -257, -513, -1025, 100])

    def _any_samples(self) -> Wave:
        return self._random.integers(-32_768, 32_768, _COUNT)

    def _quiet(self) -> Wave:
        least, most = self._random.integers(1, 40, 2)
        return self._random.integers(-least, most, _COUNT)

    def _tone(self) -> Wave:
        random = self._random
        period = random.integers(1, 800) if random.random() < 0.6 else random.uniform(2, 800)
        wave = np.sin(2 * np.pi * (_AT + random.uniform(0, 99)) / period)
        return self._amplitude() * wave + random.normal(0, random.choice([0, 0, 0.5, 3]), _COUNT)

    def _square(self) -> Wave:
        period = int(self._random.integers(1, 800))
        low, high = self._random.integers(-32_768, 32_768, 2)
        wave = np.where(_AT % period < self._random.integers(1, period + 1), low, high)
        return wave + self._random.normal(0, self._random.choice([0, 0, 1]), _COUNT)

    def _sawtooth(self) -> Wave:
        period = int(self._random.integers(1, 800))
        return (_AT % period) * int(self._random.integers(-300, 300))

    def _eight_bits(self) -> Wave:
        """Pairs of samples of 8 bits, as of a client that records in another format."""
        level = self._random.normal(128, 10 ** self._random.uniform(0, 1.8), SNIFF_BYTES)
        return np.frombuffer(np.clip(level, 0, 255).astype("u1").tobytes(), "<i2")


@pytest.mark.parametrize("count", [1_000, pytest.param(200_000, marks=pytest.mark.soak)])
def test_no_sound_is_taken_for_a_file(count: int):
    """The seed is fixed. No false alarm in 200,000 sounds means at most one in 66,000 (rule of three, 95 %)."""
    found: Counter[tuple[str, str]] = Counter()
    for kind, samples in Sounds(seed=count).made(count):
        if mime_type := sniff(samples):
            found[kind, mime_type] += 1

    assert not found
