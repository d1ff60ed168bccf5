"""Synthesized sounds in which nothing is said, as a detector of speech hears them between sentences."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from streams.audio.turn_end import SAMPLE_RATE

Samples = np.ndarray[Any, np.dtype[np.float32]]

ROOM = 8.0
"""Standard deviation of the noise of a quiet room."""
_SECONDS = 12
"""Longer than a turn waits for speech."""
_COUNT = _SECONDS * SAMPLE_RATE
_COLOURS = {"white": 0.0, "pink": 0.5, "brown": 1.0}
"""By how much the amplitude falls with the frequency: the exponent."""
_TUNES = {"falls": (523, 494, 440, 392, 349, 330, 294, 262), "leaps": (262, 330, 392, 523, 440, 349, 294, 247)}


def other_sounds(rng: np.random.Generator) -> Iterator[tuple[str, Samples]]:
    """Yield sounds and their names."""
    at = np.arange(_COUNT, dtype=np.float32) / SAMPLE_RATE
    yield "a quiet room", ROOM * noise(rng, _COUNT)
    for colour in _COLOURS:
        for level in (300, 1_000, 2_000, 4_000):
            yield f"{colour} noise, {level}", level * noise(rng, _COUNT, colour)
    yield from _music(rng, at)
    yield from _machines(rng, at)
    yield from _bursts(rng)


def noise(rng: np.random.Generator, count: int, colour: str = "pink") -> Samples:
    """Return noise with a standard deviation of 1. The spectrum of pink noise resembles that of rooms."""
    spectrum = np.fft.rfft(rng.standard_normal(count))
    spectrum /= np.maximum(np.arange(len(spectrum)), 1) ** _COLOURS[colour]
    made = np.fft.irfft(spectrum, count)
    return (made / made.std()).astype(np.float32)


def _music(rng: np.random.Generator, at: Samples) -> Iterator[tuple[str, Samples]]:
    for name, notes in _TUNES.items():
        yield f"a melody that {name}", _melody(at, notes, harmonics=1)
        yield f"a melody that {name}, of an organ", _melody(at, notes, harmonics=6)
        chords = sum(_melody(at * ratio, notes, harmonics=4) for ratio in (1, 1.26, 1.5)) / 2
        yield f"chords of a melody that {name}", chords
    for per_s in (1.5, 2, 3):
        yield f"drums, {60 * per_s:.0f} beats a minute", _drums(rng, at * per_s)


def _melody(at: Samples, pitches: tuple[int, ...], *, harmonics: int) -> Samples:
    """Return notes of half a second with vibrato and decay."""
    pitch = np.array(pitches, np.float32)[(at * 2).astype(int) % len(pitches)]
    phase = 2 * np.pi * pitch * at + 0.3 * np.sin(2 * np.pi * 5 * at)
    tone = sum(np.sin(number * phase) / number for number in range(1, harmonics + 1))
    return (5_000 * tone * np.exp(-3 * (at * 2 % 1) / 2)).astype(np.float32)


def _drums(rng: np.random.Generator, beats: Samples) -> Samples:
    beat = beats % 1
    kick = 12_000 * np.sin(2 * np.pi * 30 * beats) * np.exp(-12 * beat)
    snare = 5_000 * rng.standard_normal(len(beats)) * np.exp(-20 * ((beats + 0.25) % 1))
    return (kick + snare).astype(np.float32)


def _machines(rng: np.random.Generator, at: Samples) -> Iterator[tuple[str, Samples]]:
    for hertz in (50, 60):
        hum = np.sin(2 * np.pi * hertz * at) + 0.5 * np.sin(2 * np.pi * 3 * hertz * at)
        yield f"mains hum, {hertz} Hz", (2_000 * hum).astype(np.float32)
    turns = np.cumsum(28 + 2 * np.sin(2 * np.pi * 0.3 * at)) / SAMPLE_RATE
    engine = sum(np.sin(2 * np.pi * number * turns) / number for number in range(1, 20))
    yield "an engine", (2_000 * engine + 200 * noise(rng, _COUNT)).astype(np.float32)
    siren = np.cumsum(700 + 250 * np.sin(2 * np.pi * 0.5 * at)) / SAMPLE_RATE
    yield "a siren", (3_000 * np.sin(2 * np.pi * siren)).astype(np.float32)
    ring = np.sin(2 * np.pi * 440 * at) + np.sin(2 * np.pi * 480 * at)
    yield "a telephone", (2_000 * ring * (at % 3 < 1)).astype(np.float32)


def _bursts(rng: np.random.Generator) -> Iterator[tuple[str, Samples]]:
    """Yield sounds that are short and come at random times. The numbers are their count, length and loudness."""
    for name, colour, count, seconds, level in (
        ("slow typing", "white", 40, 0.025, 6_000),
        ("fast typing", "white", 120, 0.025, 6_000),
        ("knocks", "brown", 12, 0.15, 9_000),
        ("coughs", "pink", 6, 0.35, 6_000),
        ("rain", "white", 2_000, 0.01, 800),
    ):
        length = round(seconds * SAMPLE_RATE)
        sound = ROOM * noise(rng, _COUNT)
        fade = np.exp(-6 * np.arange(length) / length)
        for begin in rng.integers(0, _COUNT - length, count):
            sound[begin : begin + length] += level * noise(rng, length, colour) * fade
        yield name, sound.astype(np.float32)
    swell = np.sin(np.pi * np.arange(_COUNT) / SAMPLE_RATE / 1.5) ** 4
    yield "breaths", (600 * noise(rng, _COUNT) * swell).astype(np.float32)
