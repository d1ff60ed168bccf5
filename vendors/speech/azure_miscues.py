"""What was left out and what was put in: the words that were heard beside the whole reference. Pure."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from streams.alignment import matches


@dataclass(frozen=True, slots=True)
class RecognizedWord:
    """The word at `position` among those that were heard; `inserted`: the reference has no place for it."""

    position: int
    inserted: bool


@dataclass(frozen=True, slots=True)
class Omitted:
    """A word of the reference that was not heard."""

    word: str


def units(text: str, *, gap: str) -> list[str]:
    """The words of a text as recognisers write them, in small letters and without signs.

    Where no gap stands between words they are letters: who is to say where a word begins?
    """
    normal = unicodedata.normalize("NFC", text).lower().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
    if not gap:
        return [letter for letter in normal if not _is_sign(letter)]
    apart = "".join(" " if unicodedata.category(letter) == "Pd" else letter for letter in normal)
    return [word for word in map(_bare, apart.split()) if word]


def compare(reference: str, heard: Sequence[str], *, gap: str) -> list[RecognizedWord | Omitted]:
    """Every word heard, in order, with the omitted ones where they belong.

    A word of several units fits when at least half of them do; letters left out in one run are one word.
    """
    wanted = units(reference, gap=gap)
    spoken = [units(word, gap=gap) for word in heard]
    owners = [position for position, parts in enumerate(spoken) for _ in parts]
    fitting = [0] * len(heard)
    omitted: list[list[str]] = [[] for _ in range(len(heard) + 1)]
    said = [part for parts in spoken for part in parts]
    done = 0
    for begin, end, heard_begin, heard_end in [*matches(wanted, said), (len(wanted), 0, len(said), 0)]:
        if begin > done:
            place = owners[heard_begin] if heard_begin < len(owners) else len(heard)
            omitted[place] += wanted[done:begin] if gap else ["".join(wanted[done:begin])]
        for owner in owners[heard_begin:heard_end]:
            fitting[owner] += 1
        done = end
    marks: list[RecognizedWord | Omitted] = []
    for position, parts in enumerate(spoken):
        marks += map(Omitted, omitted[position])
        marks.append(RecognizedWord(position, inserted=2 * fitting[position] < len(parts)))
    return [*marks, *map(Omitted, omitted[-1])]


def _bare(word: str) -> str:
    begin, end = 0, len(word)
    while begin < end and _is_sign(word[begin]):
        begin += 1
    while end > begin and _is_sign(word[end - 1]):
        end -= 1
    return word[begin:end]


def _is_sign(letter: str) -> bool:
    return unicodedata.category(letter)[0] in "PSZC"
