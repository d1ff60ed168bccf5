"""Scores English prosody roughly from the audio: melody, stress, rhythm and speed.

The meaning is not considered: a melody that rises at the wrong place counts like one that rises at the right place.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean
from typing import TYPE_CHECKING

from vendors.local.assessment.aligning import FRAMES_PER_SECOND, Sound
from vendors.local.assessment.syllables import VOWELS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_SAMPLE_RATE = 16_000
_STEP = _SAMPLE_RATE // FRAMES_PER_SECOND
_WINDOW = 640
_TRANSFORM = 2_048
_MIN_HZ, _MAX_HZ = 70, 400
_VOICED = 0.5
_BATCH_FRAMES = 1_000
_MIN_COUNT = 4

_MELODY_SEMITONES = (1.0, 6.0)
"""The pitch range of monotonous and of lively speech, from the 10th to the 90th percentile."""
_STRESS_DB = (1.5, 5.0)
"""The standard deviation of the loudness of vowels, for flat and for lively speech."""
_RHYTHM = (15.0, 45.0)
"""The variation in length of neighbouring vowels in percent. It is low if all syllables are stressed equally."""
_SLOW, _NORMAL, _FAST = 4.0, (7.0, 17.0), 24.0
"""Phonemes per second: too slow, the normal range, too fast."""


@dataclass(frozen=True, slots=True)
class Prosody:
    """Scores from 0 to 100, `None` if there is too little speech."""

    melody: float | None
    stress: float | None
    rhythm: float | None
    speed: float | None

    @property
    def score(self) -> float:
        scores = [score for score in (self.melody, self.stress, self.rhythm, self.speed) if score is not None]
        return fmean(scores) if scores else 0.0


def prosody_of(words: Sequence[Sequence[Sound]], pcm: bytes) -> Prosody:
    """Score the prosody of words, given by their phonemes in `pcm`."""
    import numpy as np  # noqa: PLC0415 - an extra

    samples = np.frombuffer(pcm, np.int16).astype(np.float32) / np.float32(32_768)
    sounds = [sound for word in words for sound in word]
    vowels = [sound for sound in sounds if sound.phone in VOWELS]
    pitch = _semitones(samples, vowels)
    loudness = [_decibels(samples, vowel) for vowel in vowels]
    frames = sum(sound.frames for sound in sounds)
    return Prosody(
        melody=_scale(_range(pitch), _MELODY_SEMITONES) if len(pitch) >= _MIN_COUNT else None,
        stress=_scale(float(np.std(loudness)), _STRESS_DB) if len(vowels) >= _MIN_COUNT else None,
        rhythm=_scale(_unevenness(vowels), _RHYTHM) if len(vowels) >= _MIN_COUNT else None,
        speed=_speed(len(sounds) * FRAMES_PER_SECOND / frames) if frames else None,
    )


def _semitones(samples: "NDArray[np.float32]", vowels: Sequence[Sound]) -> "NDArray[np.float32]":
    """Return the pitch of each voiced frame of the vowels, in semitones, by autocorrelation."""
    import numpy as np  # noqa: PLC0415 - an extra

    begins = [frame * _STEP for vowel in vowels for frame in range(vowel.begin, vowel.begin + vowel.frames)]
    begins = [begin for begin in begins if begin + _WINDOW <= len(samples)]
    shortest, longest = _SAMPLE_RATE // _MAX_HZ, _SAMPLE_RATE // _MIN_HZ
    window = np.hanning(_WINDOW).astype(np.float32)
    shape = np.fft.irfft(np.abs(np.fft.rfft(window, _TRANSFORM)) ** 2)[: longest + 1]
    pitches: list[NDArray[np.float32]] = []
    for at in range(0, len(begins), _BATCH_FRAMES):
        frames = np.stack([samples[begin : begin + _WINDOW] for begin in begins[at : at + _BATCH_FRAMES]])
        frames = (frames - frames.mean(axis=1, keepdims=True)) * window
        correlation = np.fft.irfft(np.abs(np.fft.rfft(frames, _TRANSFORM)) ** 2)[:, : longest + 1]
        correlation = correlation / np.maximum(correlation[:, :1], 1e-9) / (shape / shape[0])
        lags = correlation[:, shortest:].argmax(axis=1) + shortest
        voiced = correlation[np.arange(len(lags)), lags] > _VOICED
        pitches.append(12 * np.log2(_SAMPLE_RATE / lags[voiced]))
    return np.concatenate(pitches) if pitches else np.empty(0, np.float32)


def _range(pitch: "NDArray[np.float32]") -> float:
    import numpy as np  # noqa: PLC0415 - an extra

    low, high = np.percentile(pitch, (10, 90))
    return float(high - low)


def _decibels(samples: "NDArray[np.float32]", sound: Sound) -> float:
    import numpy as np  # noqa: PLC0415 - an extra

    part = samples[sound.begin * _STEP : (sound.begin + sound.frames) * _STEP]
    return 10 * float(np.log10(np.mean(part**2) + 1e-9)) if len(part) else -90.0


def _unevenness(vowels: Sequence[Sound]) -> float:
    """Return the pairwise variability index of the vowels' lengths."""
    return 100 * fmean(
        abs(first.frames - second.frames) / ((first.frames + second.frames) / 2)
        for first, second in pairwise(vowels)
    )


def _speed(sounds_a_second: float) -> float:
    least, most = _NORMAL
    if sounds_a_second < least:
        return _scale(sounds_a_second, (_SLOW, least))
    return 100 - _scale(sounds_a_second, (most, _FAST))


def _scale(value: float, bounds: tuple[float, float]) -> float:
    low, high = bounds
    return 100 * min(1.0, max(0.0, (value - low) / (high - low)))
