"""How lively speech is: melody, stress, rhythm and speed, measured in the audio. A rough score of English prosody.

It knows nothing of meaning: a melody that rises in the wrong place counts as one that rises in the right one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean
from typing import TYPE_CHECKING

from vendors.local.aligning import FRAMES_A_SECOND, Sound
from vendors.local.syllables import VOWELS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_SAMPLE_RATE = 16_000
_STEP = _SAMPLE_RATE // FRAMES_A_SECOND
_WINDOW = 640
_TRANSFORM = 2_048
_LOWEST_HZ, _HIGHEST_HZ = 70, 400
_VOICED = 0.5
_AT_ONCE = 1_000
_FEWEST = 4

_MELODY_SEMITONES = (1.0, 6.0)
"""What is flat, and what is lively: the range in which four fifths of the pitch lies."""
_STRESS_DB = (1.5, 5.0)
"""How loud vowels differ."""
_RHYTHM = (15.0, 45.0)
"""How much neighbouring vowels differ in length, per cent of their mean: little where all are stressed alike."""
_SLOW, _USUAL, _FAST = 4.0, (7.0, 17.0), 24.0
"""Sounds a second."""


@dataclass(frozen=True, slots=True)
class Prosody:
    """Each 0 to 100; none where there is too little speech to tell."""

    melody: float | None
    stress: float | None
    rhythm: float | None
    speed: float | None

    @property
    def score(self) -> float:
        told = [score for score in (self.melody, self.stress, self.rhythm, self.speed) if score is not None]
        return fmean(told) if told else 0.0


def prosody_of(words: Sequence[Sequence[Sound]], pcm: bytes) -> Prosody:
    """Of words, each with its sounds, in `pcm`."""
    import numpy as np  # noqa: PLC0415 - an extra

    samples = np.frombuffer(pcm, np.int16).astype(np.float32) / np.float32(32_768)
    sounds = [sound for word in words for sound in word]
    vowels = [sound for sound in sounds if sound.phone in VOWELS]
    pitch = _semitones(samples, vowels)
    loudness = [_decibels(samples, vowel) for vowel in vowels]
    frames = sum(sound.frames for sound in sounds)
    return Prosody(
        melody=_between(_range(pitch), _MELODY_SEMITONES) if len(pitch) >= _FEWEST else None,
        stress=_between(float(np.std(loudness)), _STRESS_DB) if len(vowels) >= _FEWEST else None,
        rhythm=_between(_unevenness(vowels), _RHYTHM) if len(vowels) >= _FEWEST else None,
        speed=_speed(len(sounds) * FRAMES_A_SECOND / frames) if frames else None,
    )


def _semitones(samples: "NDArray[np.float32]", vowels: Sequence[Sound]) -> "NDArray[np.float32]":
    """The pitch in each frame of the vowels that is voiced, by autocorrelation."""
    import numpy as np  # noqa: PLC0415 - an extra

    begins = [frame * _STEP for vowel in vowels for frame in range(vowel.begin, vowel.begin + vowel.frames)]
    begins = [begin for begin in begins if begin + _WINDOW <= len(samples)]
    shortest, longest = _SAMPLE_RATE // _HIGHEST_HZ, _SAMPLE_RATE // _LOWEST_HZ
    window = np.hanning(_WINDOW).astype(np.float32)
    shape = np.fft.irfft(np.abs(np.fft.rfft(window, _TRANSFORM)) ** 2)[: longest + 1]
    found: list[NDArray[np.float32]] = []
    for at in range(0, len(begins), _AT_ONCE):
        frames = np.stack([samples[begin : begin + _WINDOW] for begin in begins[at : at + _AT_ONCE]])
        frames = (frames - frames.mean(axis=1, keepdims=True)) * window
        alike = np.fft.irfft(np.abs(np.fft.rfft(frames, _TRANSFORM)) ** 2)[:, : longest + 1]
        alike = alike / np.maximum(alike[:, :1], 1e-9) / (shape / shape[0])
        lags = alike[:, shortest:].argmax(axis=1) + shortest
        voiced = alike[np.arange(len(lags)), lags] > _VOICED
        found.append(12 * np.log2(_SAMPLE_RATE / lags[voiced]))
    return np.concatenate(found) if found else np.empty(0, np.float32)


def _range(pitch: "NDArray[np.float32]") -> float:
    import numpy as np  # noqa: PLC0415 - an extra

    low, high = np.percentile(pitch, (10, 90))
    return float(high - low)


def _decibels(samples: "NDArray[np.float32]", sound: Sound) -> float:
    import numpy as np  # noqa: PLC0415 - an extra

    part = samples[sound.begin * _STEP : (sound.begin + sound.frames) * _STEP]
    return 10 * float(np.log10(np.mean(part**2) + 1e-9)) if len(part) else -90.0


def _unevenness(vowels: Sequence[Sound]) -> float:
    """The pairwise variability index of their lengths."""
    return 100 * fmean(
        abs(one.frames - next_one.frames) / ((one.frames + next_one.frames) / 2)
        for one, next_one in pairwise(vowels)
    )


def _speed(sounds_a_second: float) -> float:
    least, most = _USUAL
    if sounds_a_second < least:
        return _between(sounds_a_second, (_SLOW, least))
    return 100 - _between(sounds_a_second, (most, _FAST))


def _between(value: float, bounds: tuple[float, float]) -> float:
    low, high = bounds
    return 100 * min(1.0, max(0.0, (value - low) / (high - low)))
