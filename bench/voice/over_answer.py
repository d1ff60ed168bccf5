"""Interruption by voice: what the client detects while an answer plays, of which the microphone hears some."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import cycle, islice

import numpy as np

from bench.turns.recordings import Recording
from bench.turns.sounds import Samples
from bench.voice.figures import Change, begins, ranked
from streams.audio.turn_end import SAMPLE_RATE

LEAKS_DB = (None, -30, -20)
"""How loud the microphone hears the answer, compared to the user. `None`: the browser removes all of it."""
HEADINGS = (
    "the answer at the microphone",
    "interrupted by sounds without speech",
    "interrupted by the answer alone",
    "not interrupted by the user within 1 s",
    "ms until the user interrupts it, p50 / p95 / max",
)
_BEGIN = SAMPLE_RATE * 3 // 10
"""Where the speech of a recording begins."""

Heard = Sequence[tuple[Recording, Sequence[Change]]]


def cases(made: Sequence[Recording], leak_db: float | None) -> list[Recording]:
    """Return what the microphone hears while an answer plays: all recordings, and then the answers alone."""
    spoken = [recording for recording in made if recording.end_ms is not None]
    if leak_db is None:
        return list(made)
    share = 10 ** (leak_db / 20)
    answers = [share * _samples(recording)[_BEGIN : _end(recording)] for recording in spoken]
    # A user speaks over the answer of another voice.
    shifted = islice(cycle(answers), len(answers) // 3, None)
    mixed = [_mixed(recording, answer) for recording, answer in zip(made, shifted, strict=False)]
    alone = [
        Recording(f"{recording.name}, leaking", _pcm(answer))
        for recording, answer in zip(spoken, answers, strict=True)
    ]
    return [*mixed, *alone]


def row(heard: Heard, leak_db: float | None, *, sounds: int) -> str:
    """Return a line of the table. `sounds`: how many of the recordings are sounds without speech."""
    spoken = [(recording, changes) for recording, changes in heard if recording.end_ms is not None]
    silent = [changes for recording, changes in heard if recording.end_ms is None]
    others, alone = silent[:sounds], silent[sounds:]
    _, late, in_time = begins(spoken)
    cells = (
        "nothing" if leak_db is None else f"{leak_db} dB",
        f"{sum(map(bool, others))} of {len(others)}",
        f"{sum(map(bool, alone))} of {len(alone)}" if alone else "",
        f"{late} of {len(spoken)}",
        ranked(in_time, 50, 95, 100),
    )
    return f"| {' | '.join(cells)} |"


def heading() -> str:
    return f"| {' | '.join(HEADINGS)} |\n| {' | '.join(['---', *['---:'] * (len(HEADINGS) - 1)])} |"


def _mixed(recording: Recording, answer: Samples) -> Recording:
    samples = _samples(recording)
    return replace(recording, pcm=_pcm(samples + np.resize(answer, len(samples))))


def _end(recording: Recording) -> int:
    return round((recording.end_ms or 0) * SAMPLE_RATE / 1000)


def _samples(recording: Recording) -> Samples:
    return np.frombuffer(recording.pcm, "<i2").astype(np.float32)


def _pcm(samples: Samples) -> bytes:
    return samples.clip(-32_768, 32_767).astype("<i2").tobytes()
