"""What a speaker may have said of a reference: its words beside those that a recogniser heard. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import groupby

from vendors.speech.azure_miscues import Omitted, compare, units

_PIECE_S = 12.0
_AROUND_S = 0.4
_LONGEST_GUESS = 20
_MOST_GUESSES = 100


@dataclass(frozen=True, slots=True)
class Segment:
    """What a recogniser heard, and about when."""

    begin_s: float
    end_s: float
    text: str


class Kind(Enum):
    FITS = "heard where the reference has it"
    MISSING = "in the reference, not heard"
    EXTRA = "heard, not in the reference"


@dataclass(frozen=True, slots=True)
class Slot:
    """A word that may have been said. `sure`: it was, as far as the search for its sounds goes.

    Not `tried`: it is not looked for.
    """

    word: str
    kind: Kind
    sure: bool
    tried: bool = True


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of the audio of at most half a minute, for the search grows with the square of its length."""

    begin_s: float
    end_s: float
    slots: Sequence[Slot] = field(default_factory=list)


def plan(reference: str, segments: Sequence[Segment], *, miscue: bool) -> list[Piece]:
    """Every word of the reference and every word that was heard, in order, each in its stretch of the audio.

    With `miscue`, where other words than those of the reference were heard, the sounds decide between the two:
    the recogniser may err. Without, the reference is searched there, so that it is graded by what was said instead.
    """
    stretches = list(_stretches(segments))
    heard = [(word, at) for at, stretch in enumerate(stretches) for word in _words(stretch)]
    slots: list[list[Slot]] = [[] for _ in stretches]
    waiting: list[Slot] = []
    for mark in compare(reference, [word for word, _ in heard], gap=" "):
        if isinstance(mark, Omitted):
            waiting.append(Slot(mark.word, Kind.MISSING, sure=False))
            continue
        word, at = heard[mark.position]
        kind = Kind.EXTRA if mark.inserted else Kind.FITS
        slots[at] += [*waiting, Slot(word, kind, sure=kind is Kind.FITS)]
        waiting.clear()
    slots[-1] += waiting
    return [
        Piece(
            max(0.0, stretch[0].begin_s - _AROUND_S),
            stretch[-1].end_s + _AROUND_S,
            list(_decided(given, miscue=miscue)),
        )
        for stretch, given in zip(stretches, slots, strict=True)
    ]


def _stretches(segments: Sequence[Segment]) -> Iterator[list[Segment]]:
    """Neighbours together, as long as they are short."""
    stretch: list[Segment] = []
    for segment in segments:
        if stretch and segment.end_s - stretch[0].begin_s > _PIECE_S:
            yield stretch
            stretch = []
        stretch.append(segment)
    if stretch:
        yield stretch


def _words(stretch: Sequence[Segment]) -> list[str]:
    return units(" ".join(segment.text for segment in stretch), gap=" ")


def _decided(slots: Sequence[Slot], *, miscue: bool) -> Iterator[Slot]:
    """Of each run of doubtful words, which are searched. A long run that nobody heard was not said."""
    guesses = _MOST_GUESSES
    for sure, run in groupby(slots, lambda slot: slot.sure):
        if sure:
            yield from run
            continue
        doubtful = list(run)
        missing = [slot for slot in doubtful if slot.kind is Kind.MISSING]
        extra = len(doubtful) - len(missing)
        instead = not miscue and bool(missing) and len(missing) <= 2 * extra
        tried = len(missing) <= min(guesses, max(_LONGEST_GUESS, 2 * extra))
        guesses -= len(missing) if tried else 0
        for slot in doubtful:
            if slot.kind is Kind.EXTRA:
                yield Slot(slot.word, slot.kind, sure=False, tried=not (instead and tried))
            else:
                yield Slot(slot.word, slot.kind, sure=instead and tried, tried=tried)
