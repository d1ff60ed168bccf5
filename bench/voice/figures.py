"""The figures of detectors: what they mistake for speech, and where they find the end of an utterance."""

from collections.abc import Sequence
from dataclasses import dataclass

from bench.turns.recordings import Recording

PAUSE_MS = 810
"""The pause that ends an utterance in the client, if an app does not choose another."""
BEGIN_MS = 300
"""Where the speech of a recording begins."""
EARLY_MS = 100
"""An end is in mid-sentence if it is found this long before the end of the last word. Words fade away."""
MISSED_MS = 1_000
"""An utterance that begins later than this after the speech counts as not heard."""

Change = tuple[str, float]
"""What has changed, `began` or `ended`, and how many milliseconds had been heard by then."""


@dataclass(frozen=True, slots=True)
class Heard:
    """What one detector has made of all recordings. `cpu` is the share of a core that it takes while it listens."""

    name: str
    version: str
    download_bytes: int
    cpu: float
    changes: Sequence[Sequence[Change]]


HEADINGS = (
    "detector",
    "download",
    "CPU",
    "false starts",
    "begun before the speech",
    "not heard within 1 s",
    "ms until speech is heard, p50 / max",
    f"cut off at a pause of less than {PAUSE_MS} ms",
    f"cut off at a pause of {PAUSE_MS} ms or more",
    "end not found",
    "ms from the last word to the end, p50 / p95 / max",
)


def table(detectors: Sequence[Heard], recordings: Sequence[Recording]) -> str:
    lines = [HEADINGS, ["---", *["---:"] * (len(HEADINGS) - 1)]]
    lines += [_cells(heard, recordings) for heard in detectors]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cells(heard: Heard, recordings: Sequence[Recording]) -> list[str]:
    others = [changes for recording, changes in _pairs(heard, recordings) if recording.end_ms is None]
    spoken = [(recording, changes) for recording, changes in _pairs(heard, recordings) if recording.end_ms]
    early, late, in_time = begins(spoken)
    short = [(recording, changes) for recording, changes in spoken if recording.pause_ms < PAUSE_MS]
    long = [(recording, changes) for recording, changes in spoken if recording.pause_ms >= PAUSE_MS]
    cut_off, endless, delays = ends(short)
    cut_off_in_long, _, _ = ends(long)
    return [
        f"{heard.name} {heard.version}".rstrip(),
        f"{heard.download_bytes / 1024:,.0f} KiB",
        f"{100 * heard.cpu:.1f}%",
        f"{sum(bool(changes) for changes in others)} of {len(others)}",
        f"{early} of {len(spoken)}",
        f"{late} of {len(spoken)}",
        ranked(in_time, 50, 100),
        f"{cut_off} of {len(short)}",
        f"{cut_off_in_long} of {len(long)}",
        f"{endless} of {len(short)}",
        ranked(delays, 50, 95, 100),
    ]


def begins(spoken: Sequence[tuple[Recording, Sequence[Change]]]) -> tuple[int, int, list[float]]:
    """Count the begins before the speech, and those that are late or missing. Return the delays of the others."""
    found = [next((ms for change, ms in changes if change == "began"), None) for _, changes in spoken]
    early = sum(begin is not None and begin <= BEGIN_MS for begin in found)
    late = sum(begin is None or begin > BEGIN_MS + MISSED_MS for begin in found)
    return early, late, [begin - BEGIN_MS for begin in found if begin and 0 < begin - BEGIN_MS <= MISSED_MS]


def ends(spoken: Sequence[tuple[Recording, Sequence[Change]]]) -> tuple[int, int, list[float]]:
    """Count the sentences that are cut off and those whose end is not found. Return the delays of the others."""
    cut_off, endless, delays = 0, 0, []
    for recording, changes in spoken:
        found = [ms for change, ms in changes if change == "ended"]
        end_ms = recording.end_ms or 0
        if found and found[0] - PAUSE_MS < end_ms - EARLY_MS:
            cut_off += 1
        elif not found or found[-1] - PAUSE_MS < end_ms - EARLY_MS:
            endless += 1
        else:
            delays.append(found[-1] - end_ms)
    return cut_off, endless, delays


def _pairs(heard: Heard, recordings: Sequence[Recording]) -> list[tuple[Recording, Sequence[Change]]]:
    return list(zip(recordings, heard.changes, strict=True))


def ranked(values: Sequence[float], *percents: int) -> str:
    """Return these percentiles of the values, as a cell of a table."""
    ranked = sorted(values)
    if not ranked:
        return "none"
    return " / ".join(f"{ranked[(len(ranked) - 1) * percent // 100]:.0f}" for percent in percents)
