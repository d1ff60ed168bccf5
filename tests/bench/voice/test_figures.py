"""The figures of `bench.voice`: what detectors have taken for a voice, and which ends are judged to be wrong."""

import pytest

pytest.importorskip("numpy")
pytest.importorskip("soxr")

from bench.turns.recordings import Recording
from bench.voice.figures import HEADINGS, Heard, ends, table

END_MS = 3_000


def test_ends_are_judged_by_the_last_word() -> None:
    short = Recording("a short pause", b"", 700, END_MS)
    heard = [
        (short, [("began", 500.0), ("ended", 3_850.0)]),
        (short, [("began", 500.0), ("ended", 2_300.0), ("began", 2_600.0), ("ended", 3_850.0)]),
        (short, [("began", 500.0)]),
        (short, []),
    ]
    assert ends(heard) == (1, 2, [850])


def test_a_row_tells_sentences_with_a_longer_pause_than_that_of_the_client_from_the_others() -> None:
    spoken, paused = Recording("speech", b"", 0, END_MS), Recording("a pause", b"", 900, END_MS)
    others = [Recording("noise", b""), Recording("music", b"")]
    changes = [
        [("began", 500.0), ("ended", 3_850.0)],
        [("began", 180.0)],
        [("began", 1_301.0), ("ended", 3_860.0)],
        [("began", 500.0), ("ended", 2_300.0), ("began", 2_600.0), ("ended", 3_900.0)],
        [],
        [("began", 900.0)],
        [],
    ]
    recordings = [spoken, spoken, spoken, paused, paused, *others]
    lines = table([Heard("ours", "1.0", 205_824, 0.0123, changes)], recordings).splitlines()
    assert lines[0] == f"| {' | '.join(HEADINGS)} |"
    cells = {
        "detector": "ours 1.0",
        "download": "201 KiB",
        "CPU": "1.2%",
        "false starts": "1 of 2",
        "begun before the speech": "1 of 5",
        "not heard within 1 s": "2 of 5",
        "ms until speech is heard, p50 / max": "200 / 200",
        "cut off at a pause of less than 810 ms": "0 of 3",
        "cut off at a pause of 810 ms or more": "1 of 2",
        "end not found": "1 of 3",
        "ms from the last word to the end, p50 / p95 / max": "850 / 850 / 860",
    }
    assert lines[2] == f"| {' | '.join(cells.values())} |"
    assert tuple(cells) == HEADINGS
