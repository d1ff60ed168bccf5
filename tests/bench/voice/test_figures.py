"""The figures of `bench.voice`: what detectors have mistaken for speech, and which ends are judged to be wrong."""

import pytest

pytest.importorskip("numpy")
pytest.importorskip("soxr")

from bench.generated_section import between
from bench.turns.recordings import Recording
from bench.voice.__main__ import marks
from bench.voice.figures import HEADINGS, Heard, ends, table
from tests.clients.packages import TYPESCRIPT
from tests.code.source_files import ROOT

END_MS = 3_000
PAGE = ROOT / "bench" / "voice" / "README.md"


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


def test_the_page_has_the_tables_and_the_readme_of_the_client_the_figures_of_its_row() -> None:
    for name in ("files", "in-browser"):
        assert f"| {' | '.join(HEADINGS)} |" in between(PAGE, marks(name))
    assert "interrupted by the answer alone" in between(PAGE, marks("over-answer"))
    _, ours = between(PAGE, marks("files")).split("| `parley-client/audio`")
    cells = dict(zip(HEADINGS[1:], ours.partition("\n")[0].split(" | ")[1:], strict=True))
    readme = (TYPESCRIPT / "README.md").read_text()
    _, _, slowest = cells["ms until speech is heard, p50 / max"].partition(" / ")
    median, _, _ = cells["ms from the last word to the end, p50 / p95 / max"].partition(" / ")
    assert all(cells[heading].startswith("0 of ") for heading in ("false starts", "not heard within 1 s"))
    for figure in (cells["download"], f"{cells['CPU']} of a core", f"within {slowest} ms", f"in {median} ms"):
        assert figure in readme
