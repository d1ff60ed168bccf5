"""Splits English phonemes into syllables, each with the longest onset that can start a word. Does no I/O."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

VOWELS = frozenset(["AA", "AE", "AH", "AO", "AW", "AY", "EH", "ER", "EY", "IH", "IY", "OW", "OY", "UH", "UW"])

_NEVER_INITIAL = frozenset(["NG"])
_CLUSTERS = frozenset([
    "P L", "P R", "P Y", "B L", "B R", "B Y", "T R", "T W", "D R", "D W", "K L", "K R", "K W",
    "K Y", "G L", "G R", "F L", "F R", "F Y", "TH R", "TH W", "SH R", "HH Y", "V Y", "M Y", "N Y",
    "S P", "S T", "S K", "S L", "S W", "S M", "S N", "S F", "S P L", "S P R", "S P Y", "S T R", "S K R",
    "S K W", "S K Y",
])  # fmt: skip


def syllables(phones: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the start and end index of each syllable. A word without a vowel is one syllable."""
    vowels = [at for at, phone in enumerate(phones) if phone in VOWELS]
    begin = 0
    for previous_vowel, vowel in pairwise(vowels):
        end = _onset(phones, previous_vowel + 1, vowel)
        yield begin, end
        begin = end
    if phones:
        yield begin, len(phones)


def _onset(phones: Sequence[str], begin: int, vowel: int) -> int:
    """Return the start index of the syllable of `vowel`, at or after `begin`."""
    for at in range(max(begin, vowel - 3), vowel):
        onset = " ".join(phones[at:vowel])
        length = vowel - at
        if (length == 1 and onset not in _NEVER_INITIAL) or onset in _CLUSTERS:
            return at
    return vowel
