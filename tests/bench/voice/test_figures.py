"""The figures of `bench.voice`: what detectors have taken for a voice, and which ends are judged to be wrong."""

import pytest

pytest.importorskip("numpy")
pytest.importorskip("soxr")

from bench.turns.recordings import Recording
from bench.voice.figures import HEADINGS, Heard, ends, table

END_MS = 3_000


def test_ends_are_judged_by_the_last_word_and_by_the_pause_that_ends_an_utterance() -> None:
    paused = Recording("a pause", b"", 900, END_MS)
    short = Recording("a short pause", b"", 700, END_MS)
    heard = [
        (short, [("began", 500.0), ("ended", 3_850.0)]),
        (short, [("began", 500.0), ("ended", 2_300.0), ("began", 2_600.0), ("ended", 3_850.0)]),
        (short, [("began", 500.0)]),
        (short, []),
        (paused, [("began", 500.0), ("ended", 2_300.0), ("began", 2_600.0), ("ended", 3_900.0)]),
        (paused, [("began", 500.0), ("ended", 2_300.0), ("began", 2_600.0)]),
    ]
    assert ends(heard) == (1, 3, [850, 900])


def test_a_detector_has_a_row_with_its_begins() -> None:
    spoken = Recording("speech", b"", 0, END_MS)
    recordings = [spoken, spoken, Recording("noise", b""), Recording("music", b"")]
    changes = [[("began", 500.0), ("ended", 3_850.0)], [("began", 180.0)], [("began", 900.0)], []]
    lines = table([Heard("ours", "1.0", 205_824, 0.0123, changes)], recordings).splitlines()
    assert lines[0] == f"| {' | '.join(HEADINGS)} |"
    cells = ["ours 1.0", "201 KiB", "1.2%", "1 of 2", "1 of 2", "200 / 200", "0 of 2", "1 of 2", "850 / 850 / 850"]
    assert lines[2] == f"| {' | '.join(cells)} |"
