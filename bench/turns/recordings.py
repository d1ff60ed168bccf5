"""Recordings of 16-bit mono PCM at 16 kHz: sentences with pauses and noise, and sounds that are not speech."""

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np
import soxr

from streams.audio.turn_end import SAMPLE_RATE
from vendors.local.engines.espeak import Espeak
from vendors.local.engines.piper import Piper

Samples = np.ndarray[Any, np.dtype[np.float32]]

PAUSES_MS = (100, 300, 500, 700, 900)
SNR_DB = (None, 20, 10, 5)
"""Levels of speech above noise. `None`: the noise of a quiet room."""
_VOICES = ("espeak en-us", "espeak en-us+f3", "espeak de", "piper joe")
_SENTENCES = {
    "en": ("Could you tell me where my parcel is,", "because it should have been here on Tuesday?"),
    "de": ("Können Sie mir sagen, wo mein Paket ist,", "denn es sollte schon am Dienstag hier sein?"),
}
_AFTER_S = 4
_OTHER_S = 12
_ROOM = 8.0
"""Standard deviation of the noise of a quiet room."""
_EDGE = 0.02
"""Samples below this share of the loudest one are no part of a clause."""


@dataclass(frozen=True, slots=True)
class Recording:
    """`end_ms` is where its last word ends. A recording without speech has none."""

    name: str
    pcm: bytes
    pause_ms: int = 0
    end_ms: float | None = None


async def recordings(seed: int = 1) -> list[Recording]:
    """Return all recordings. The same seed makes the same ones."""
    rng = np.random.default_rng(seed)
    spoken = [recording async for recording in _sentences(rng)]
    return [*spoken, *(Recording(name, _pcm(sound)) for name, sound in _other_sounds(rng))]


async def _sentences(rng: np.random.Generator) -> AsyncIterator[Recording]:
    async with AsyncExitStack() as stack:
        engines = {"espeak": Espeak(), "piper": Piper()}
        for engine in engines.values():
            stack.callback(engine.close)
        for voice in _VOICES:
            name, _, variant = voice.partition(" ")
            first, second = [
                await _clause(engines[name], text, variant)
                for text in _SENTENCES["de" if variant == "de" else "en"]
            ]
            for pause_ms in PAUSES_MS:
                speech = np.concatenate([_silence(0.3), first, _silence(pause_ms / 1000), second])
                audio = np.concatenate([speech, _silence(_AFTER_S)])
                for snr_db in SNR_DB:
                    level = _ROOM if snr_db is None else _rms(first) / 10 ** (snr_db / 20)
                    noisy = audio + level * _pink(rng, len(audio))
                    label = f"{voice}, pause {pause_ms} ms, {'quiet' if snr_db is None else f'{snr_db} dB'}"
                    yield Recording(label, _pcm(noisy), pause_ms, len(speech) * 1000 / SAMPLE_RATE)


async def _clause(engine: Espeak | Piper, text: str, voice: str) -> Samples:
    async with engine.speak(text, voice=voice, speed=1.0) as pieces:
        pcm = b"".join([piece.pcm async for piece in pieces])
    samples = soxr.resample(np.frombuffer(pcm, np.int16).astype(np.float32), engine.sample_rate, SAMPLE_RATE)
    loud = np.flatnonzero(np.abs(samples) > _EDGE * np.abs(samples).max())
    return samples[loud[0] : loud[-1] + 1]


def _other_sounds(rng: np.random.Generator) -> Iterator[tuple[str, Samples]]:
    """Yield sounds in which nothing is said, each for longer than a turn waits for speech."""
    count = _OTHER_S * SAMPLE_RATE
    at = np.arange(count, dtype=np.float32) / SAMPLE_RATE
    yield "a quiet room", _ROOM * _pink(rng, count)
    for level in (300, 1_000, 4_000):
        yield f"white noise, {level}", level * rng.standard_normal(count).astype(np.float32)
        yield f"pink noise, {level}", level * _pink(rng, count)
    yield "mains hum", 2_000 * (np.sin(2 * np.pi * 50 * at) + 0.5 * np.sin(2 * np.pi * 150 * at))
    yield "clicks of a keyboard", _clicks(rng, count)
    yield "a melody", _melody(at, harmonics=1)
    yield "a melody of an organ", _melody(at, harmonics=6)
    yield "chords", sum(_melody(at * ratio, harmonics=4) for ratio in (1, 1.26, 1.5)) / 2
    yield "drums", _drums(rng, at)


def _melody(at: Samples, *, harmonics: int) -> Samples:
    """Return notes of half a second with vibrato and decay."""
    notes = np.array([262, 330, 392, 523, 440, 349, 294, 247], np.float32)
    pitch = notes[(at * 2).astype(int) % len(notes)]
    phase = 2 * np.pi * pitch * at + 0.3 * np.sin(2 * np.pi * 5 * at)
    tone = sum(np.sin(number * phase) / number for number in range(1, harmonics + 1))
    return (5_000 * tone * np.exp(-3 * (at * 2 % 1) / 2)).astype(np.float32)


def _drums(rng: np.random.Generator, at: Samples) -> Samples:
    beat = at * 2 % 1
    kick = 12_000 * np.sin(2 * np.pi * 60 * at) * np.exp(-12 * beat)
    snare = 5_000 * rng.standard_normal(len(at)) * np.exp(-20 * ((at + 0.25) * 2 % 1))
    return (kick + snare).astype(np.float32)


def _clicks(rng: np.random.Generator, count: int) -> Samples:
    sound = _ROOM * _pink(rng, count)
    for begin in rng.integers(0, count - 400, 60):
        sound[begin : begin + 400] += 6_000 * rng.standard_normal(400) * np.exp(-np.arange(400) / 60)
    return sound.astype(np.float32)


def _pink(rng: np.random.Generator, count: int) -> Samples:
    """Return pink noise with a standard deviation of 1. Its spectrum resembles that of rooms."""
    spectrum = np.fft.rfft(rng.standard_normal(count))
    spectrum /= np.sqrt(np.maximum(np.arange(len(spectrum)), 1))
    noise = np.fft.irfft(spectrum, count)
    return (noise / noise.std()).astype(np.float32)


def _silence(seconds: float) -> Samples:
    return np.zeros(round(seconds * SAMPLE_RATE), np.float32)


def _rms(samples: Samples) -> float:
    return float(np.sqrt((samples**2).mean()))


def _pcm(samples: Samples) -> bytes:
    return samples.clip(-32_768, 32_767).astype("<i2").tobytes()
