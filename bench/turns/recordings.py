"""Recordings of 16-bit mono PCM at 16 kHz: synthesized sentences with pauses and noise, and other sounds."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass

import numpy as np
import soxr

from bench.turns.sounds import ROOM, Samples, noise, other_sounds
from streams.audio.turn_end import SAMPLE_RATE
from vendors.local.engines.espeak import Espeak
from vendors.local.engines.piper import Piper

PAUSES_MS = (100, 300, 600, 900, 1_200)
SNR_DB = (None, 20, 10, 5)
"""Levels of speech above noise. `None`: the noise of a quiet room."""
_VOICES = ("espeak en-us", "espeak en-us+f3", "espeak de", "piper joe")
_SENTENCES = {
    "en": ("Could you tell me where my parcel is,", "because it should have been here on Tuesday?"),
    "de": ("Können Sie mir sagen, wo mein Paket ist,", "denn es sollte schon am Dienstag hier sein?"),
}
_AFTER_S = 4
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
    return [*spoken, *(Recording(name, _pcm(sound)) for name, sound in other_sounds(rng))]


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
                    level = ROOM if snr_db is None else _rms(first) / 10 ** (snr_db / 20)
                    noisy = audio + level * noise(rng, len(audio))
                    label = f"{voice}, pause {pause_ms} ms, {'quiet' if snr_db is None else f'{snr_db} dB'}"
                    yield Recording(label, _pcm(noisy), pause_ms, len(speech) * 1000 / SAMPLE_RATE)


async def _clause(engine: Espeak | Piper, text: str, voice: str) -> Samples:
    async with engine.speak(text, voice=voice, speed=1.0) as pieces:
        pcm = b"".join([piece.pcm async for piece in pieces])
    samples = soxr.resample(np.frombuffer(pcm, np.int16).astype(np.float32), engine.sample_rate, SAMPLE_RATE)
    loud = np.flatnonzero(np.abs(samples) > _EDGE * np.abs(samples).max())
    return samples[loud[0] : loud[-1] + 1]


def _silence(seconds: float) -> Samples:
    return np.zeros(round(seconds * SAMPLE_RATE), np.float32)


def _rms(samples: Samples) -> float:
    return float(np.sqrt((samples**2).mean()))


def _pcm(samples: Samples) -> bytes:
    return samples.clip(-32_768, 32_767).astype("<i2").tobytes()
