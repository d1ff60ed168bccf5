"""Prosody scores of synthetic speech: tones with given pitch, loudness and length."""

import math
import struct
from collections.abc import Sequence

import pytest

from vendors.local.assessment.aligning import Sound
from vendors.local.assessment.prosody import Prosody, prosody_of

pytest.importorskip("numpy")

EVEN = [20] * 10
FLAT = [120.0] * 10
LIVELY = [100.0, 150.0, 110.0, 180.0, 120.0, 160.0, 105.0, 140.0, 190.0, 95.0]
UNEVEN = [10, 25, 12, 30, 9, 24, 14, 28, 11, 22]
LOUD = [0.5] * 10


def measured(pitches: Sequence[float], frames: Sequence[int], loudness: Sequence[float] = LOUD) -> Prosody:
    """Return the prosody of a word of vowels, each given by its pitch in Hz and its length in 10 ms."""
    pcm = bytearray()
    sounds: list[Sound] = []
    for hertz, length, loud in zip(pitches, frames, loudness, strict=True):
        sounds.append(Sound("AA", len(pcm) // 320, length, 0.0))
        for at in range(160 * length):
            wave = sum(math.sin(2 * math.pi * hertz * part * at / 16_000) / part for part in range(1, 6))
            pcm += struct.pack("<h", round(loud * wave / 2.3 * 32_767))
    return prosody_of([sounds], bytes(pcm))


def test_speech_melody_scores_above_a_monotone() -> None:
    flat, lively = measured(FLAT, EVEN), measured(LIVELY, EVEN)
    assert flat.melody == 0
    assert lively.melody == 100
    assert flat.score < lively.score


def test_speech_rhythm_scores_above_an_even_beat() -> None:
    assert measured(FLAT, EVEN).rhythm == 0
    assert measured(FLAT, UNEVEN).rhythm == 100


def test_stress_is_detected_by_loudness() -> None:
    assert measured(FLAT, EVEN).stress == 0
    assert measured(FLAT, EVEN, [0.9, 0.1] * 5).stress == 100


def test_speech_is_too_slow_or_too_fast() -> None:
    assert measured(FLAT, [10] * 10).speed == 100
    assert measured(FLAT, [40] * 10).speed == 0
    assert measured(FLAT, [4] * 10).speed == 0


def test_short_texts_have_only_a_speed_score() -> None:
    few = measured(FLAT[:1], [2], LOUD[:1])
    assert (few.melody, few.stress, few.rhythm) == (None, None, None)
    assert few.speed == few.score == 0
    assert prosody_of([], b"").score == 0
