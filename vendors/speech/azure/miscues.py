"""Finds omitted and inserted words by aligning recognized words with the reference text. Does no I/O."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from streams.audio.alignment import matches


@dataclass(frozen=True, slots=True)
class RecognizedWord:
    """The recognized word at `position`. `inserted`: it has no counterpart in the reference."""

    position: int
    inserted: bool


@dataclass(frozen=True, slots=True)
class Omitted:
    """A word of the reference that was not spoken."""

    word: str


def units(text: str, *, gap: str) -> list[str]:
    """Split a text into units for comparison: its words in lower case, without punctuation.

    In languages without a `gap` between words the units are letters, because word boundaries are unknown.
    """
    normal = unicodedata.normalize("NFC", text).lower().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
    if not gap:
        return [letter for letter in normal if not _is_punctuation(letter)]
    dashless = "".join(" " if unicodedata.category(letter) == "Pd" else letter for letter in normal)
    return [word for word in map(_strip_punctuation, dashless.split()) if word]


def compare(reference: str, recognized: Sequence[str], *, gap: str) -> list[RecognizedWord | Omitted]:
    """Return all recognized words in order, with the omitted words at their positions.

    A word of several units matches if at least half of its units match. Consecutive omitted letters form one word.
    """
    expected = units(reference, gap=gap)
    spoken = [units(word, gap=gap) for word in recognized]
    owners = [position for position, parts in enumerate(spoken) for _ in parts]
    matching = [0] * len(recognized)
    omitted: list[list[str]] = [[] for _ in range(len(recognized) + 1)]
    actual = [part for parts in spoken for part in parts]
    done = 0
    for begin, end, actual_begin, actual_end in [*matches(expected, actual), (len(expected), 0, len(actual), 0)]:
        if begin > done:
            position = owners[actual_begin] if actual_begin < len(owners) else len(recognized)
            omitted[position] += expected[done:begin] if gap else ["".join(expected[done:begin])]
        for owner in owners[actual_begin:actual_end]:
            matching[owner] += 1
        done = end
    marks: list[RecognizedWord | Omitted] = []
    for position, parts in enumerate(spoken):
        marks += map(Omitted, omitted[position])
        marks.append(RecognizedWord(position, inserted=2 * matching[position] < len(parts)))
    return [*marks, *map(Omitted, omitted[-1])]


def _strip_punctuation(word: str) -> str:
    begin, end = 0, len(word)
    while begin < end and _is_punctuation(word[begin]):
        begin += 1
    while end > begin and _is_punctuation(word[end - 1]):
        end -= 1
    return word[begin:end]


def _is_punctuation(letter: str) -> bool:
    return unicodedata.category(letter)[0] in "PSZC"
