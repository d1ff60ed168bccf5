"""What `bench.voice` measures while an answer plays: what the microphone hears, and what interrupts the answer."""

import pytest

pytest.importorskip("numpy")
pytest.importorskip("soxr")

import numpy as np

from bench.turns.recordings import Recording
from bench.voice.over_answer import HEADINGS, cases, heading, row

END_MS = 1_300
_SILENCE = np.zeros(4_800)


def spoken(level: int) -> Recording:
    """Return a recording with speech of one level, from 300 ms on."""
    return Recording("speech", _pcm(np.concatenate([_SILENCE, np.full(16_000, level)])), 0, END_MS)


def _pcm(samples) -> bytes:
    return samples.astype("<i2").tobytes()


def levels(recording: Recording) -> set[int]:
    return set(np.frombuffer(recording.pcm, "<i2").tolist())


def test_the_answer_of_another_voice_leaks_into_all_recordings() -> None:
    made = [spoken(1_000), spoken(2_000), spoken(3_000), Recording("noise", _pcm(np.full(8_000, 50)))]
    assert cases(made, None) == made
    heard = cases(made, -20)
    assert [levels(recording) for recording in heard] == [
        {200, 1_200},
        {300, 2_300},
        {100, 3_100},
        {250},
        *({100}, {200}, {300}),
    ]
    assert [recording.end_ms for recording in heard] == [END_MS, END_MS, END_MS, None, None, None, None]


def test_a_row_tells_what_interrupted_the_answer() -> None:
    noise, answer = Recording("noise", b""), Recording("answer", b"")
    heard = [
        (spoken(1), [("began", 700.0), ("ended", 2_000.0)]),
        (spoken(1), [("began", 1_400.0)]),
        (noise, [("began", 400.0)]),
        (noise, []),
        (answer, []),
    ]
    cells = {
        "the answer at the microphone": "-30 dB",
        "interrupted by sounds without speech": "1 of 2",
        "interrupted by the answer alone": "0 of 1",
        "not interrupted by the user within 1 s": "1 of 2",
        "ms until the user interrupts it, p50 / p95 / max": "400 / 400 / 400",
    }
    assert row(heard, -30, sounds=2) == f"| {' | '.join(cells.values())} |"
    assert tuple(cells) == HEADINGS
    assert heading().startswith(f"| {' | '.join(HEADINGS)} |\n")
