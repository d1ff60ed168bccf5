"""Plans which words to search in audio, by comparing the reference with recognized words. Does no I/O."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import groupby

from vendors.speech.azure.miscues import Omitted, compare, units

_PIECE_S = 12.0
"""Maximum length of a piece that consists of several segments."""
_MARGIN_S = 0.4
_MAX_RUN_GUESSES = 20
_MAX_GUESSES = 100
"""Unrecognized words of a run, and of a piece, that are searched."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A recognized piece of speech with its approximate times."""

    begin_s: float
    end_s: float
    text: str


class Kind(Enum):
    FITS = "recognized where the reference has it"
    MISSING = "in the reference, not recognized"
    EXTRA = "recognized, not in the reference"


@dataclass(frozen=True, slots=True)
class Slot:
    """A word that may have been spoken.

    `sure`: the search assumes that it was spoken. `tried`: the search includes it.
    """

    word: str
    kind: Kind
    sure: bool
    tried: bool = True


@dataclass(frozen=True, slots=True)
class Piece:
    """A section of the audio. It is short, because the search time grows with the square of its length."""

    begin_s: float
    end_s: float
    slots: Sequence[Slot] = field(default_factory=list)


def plan(reference: str, segments: Sequence[Segment], *, miscue: bool) -> list[Piece]:
    """Return all words of the reference and all recognized words in order, assigned to sections of the audio.

    With `miscue`, the phonemes decide between a word of the reference and a different recognized word, because the
    recognizer may be wrong. Without it, only the word of the reference is searched there, so that it is graded by
    what was spoken instead.
    """
    sections = list(_sections(segments))
    recognized = [(word, index) for index, section in enumerate(sections) for word in _words(section)]
    slots: list[list[Slot]] = [[] for _ in sections]
    pending: list[Slot] = []
    for mark in compare(reference, [word for word, _ in recognized], gap=" "):
        if isinstance(mark, Omitted):
            pending.append(Slot(mark.word, Kind.MISSING, sure=False))
            continue
        word, index = recognized[mark.position]
        kind = Kind.EXTRA if mark.inserted else Kind.FITS
        slots[index] += [*pending, Slot(word, kind, sure=kind is Kind.FITS)]
        pending.clear()
    slots[-1] += pending
    return [
        Piece(
            max(0.0, section[0].begin_s - _MARGIN_S),
            section[-1].end_s + _MARGIN_S,
            list(_decide(section_slots, miscue=miscue)),
        )
        for section, section_slots in zip(sections, slots, strict=True)
    ]


def _sections(segments: Sequence[Segment]) -> Iterator[list[Segment]]:
    """Group consecutive segments into sections of limited length."""
    section: list[Segment] = []
    for segment in segments:
        if section and segment.end_s - section[0].begin_s > _PIECE_S:
            yield section
            section = []
        section.append(segment)
    if section:
        yield section


def _words(section: Sequence[Segment]) -> list[str]:
    return units(" ".join(segment.text for segment in section), gap=" ")


def _decide(slots: Sequence[Slot], *, miscue: bool) -> Iterator[Slot]:
    """Decide which words of each run of uncertain words are searched.

    A long run of unrecognized words is assumed not to have been spoken.
    """
    guesses_left = _MAX_GUESSES
    for sure, run in groupby(slots, lambda slot: slot.sure):
        if sure:
            yield from run
            continue
        uncertain = list(run)
        missing = [slot for slot in uncertain if slot.kind is Kind.MISSING]
        extra = len(uncertain) - len(missing)
        # Enough other words were recognized to be the missing ones, spoken differently.
        replaced = not miscue and bool(missing) and len(missing) <= 2 * extra
        tried = len(missing) <= min(guesses_left, max(_MAX_RUN_GUESSES, 2 * extra))
        guesses_left -= len(missing) if tried else 0
        for slot in uncertain:
            if slot.kind is Kind.EXTRA:
                yield Slot(slot.word, slot.kind, sure=False, tried=not (replaced and tried))
            else:
                yield Slot(slot.word, slot.kind, sure=replaced and tried, tried=tried)
