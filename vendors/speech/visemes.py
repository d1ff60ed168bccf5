"""Mouth shapes: from phonemes with their times, or guessed from letters where a vendor gives no times.

The shapes are the 22 of vendor A. Phonemes are IPA, as espeak-ng and piper give them. Pure.
"""
# ruff: noqa: RUF001 - letters of phonetics are meant, not their Latin look-alikes

import unicodedata
from collections.abc import Iterable, Iterator

from vendors.protocols import Viseme

_SILENCE = 0

_SOUNDS = {
    1: "æ ə ʌ ɐ ɘ",
    2: "ɑ a ɒ ɶ",
    3: "ɔ",
    4: "ɛ ʊ e eɪ ei ɛɪ",
    5: "ɝ ɚ ɜ",
    6: "i j ɪ ɨ ɯ ɰ ʝ",
    7: "w u ʉ y ʏ ɥ ʍ",
    8: "o oʊ ou əʊ ø œ ɵ ɤ ɞ",
    9: "aʊ au ɑʊ æʊ ɑu",
    10: "ɔɪ ɔi oɪ oi ɔø ɔʏ ɔy",
    11: "aɪ ai ɑɪ aj",
    12: "h ɦ ħ ʕ",
    13: "ɹ r ɾ ɻ ɽ ʀ ʁ ɺ",
    14: "l ɫ ɭ ʎ ɬ ɮ ʟ",
    15: "s z ts dz ʦ ʣ",
    16: "ʃ ʒ tʃ dʒ ʧ ʤ ɕ ʑ tɕ dʑ ʂ ʐ tʂ dʐ ç",
    17: "ð",
    18: "f v ʋ pf ɱ",
    19: "d t n θ ʈ ɖ ɳ ɲ",
    20: "k ɡ g ŋ c ɟ q ɢ x ɣ χ ɴ",
    21: "p b m β ɸ ʙ",
}
_OF_SOUND = {
    unicodedata.normalize("NFD", sound): viseme_id
    for viseme_id, sounds in _SOUNDS.items()
    for sound in sounds.split()
}
_LETTERS_OF_SOUNDS = frozenset("".join(_OF_SOUND))
_MARKS = frozenset("ˈˌːˑʔʰʲʷˠˤ˞ʼ ‿|")
"""Stress, length, colour, the gap between words: none of them moves the lips."""

_SPELLINGS = {
    1: "u æ",
    2: "a",
    4: "e ai ay ei ey",
    5: "er ir ur",
    6: "i j y ee ea ie",
    7: "w u oo wh",
    8: "o oa ø œ",
    9: "ou ow au",
    10: "oi oy",
    12: "h",
    13: "r",
    14: "l ł",
    15: "s z c ss ß",
    16: "sh ch tch sch",
    17: "th",
    18: "f v ph ff",
    19: "d t n tt nn",
    20: "k g q x ck ng gh",
    21: "p b m pp mm",
}
_OF_SPELLING = {spelling: viseme_id for viseme_id, row in _SPELLINGS.items() for spelling in row.split()}
_VOWELS = range(1, 12)
_SYLLABLE = ((19, 1), (1, 2))
"""A letter or sign of another script: a consonant and a vowel, for want of knowledge."""
_PAUSES = dict.fromkeys(",;:،、，；：-–—", 2) | dict.fromkeys(".!?…؟।。！？\n", 4)


def visemes_of(phonemes: Iterable[tuple[str, int]]) -> list[Viseme]:
    """The shapes of phonemes and their offsets in milliseconds; equal neighbours are one, unknown ones silence.

    Two phonemes that are one sound together (`a`, `ʊ`) are one shape.
    """
    return _merged(_shapes(phonemes))


def visemes_of_letters(letters: Iterable[tuple[str, int, int]]) -> list[Viseme]:
    """The shapes of letters, read as `estimate` reads them; each letter with its begin and end in milliseconds."""
    plain = [(sign, begin_ms, end_ms) for letter, begin_ms, end_ms in letters for sign in _plain(letter)]
    shapes: list[tuple[int, int]] = []
    before = -1
    for at, viseme_id, _ in _spelled("".join(sign for sign, _, _ in plain)):
        _, begin_ms, end_ms = plain[at]
        shapes.append((viseme_id, (begin_ms + end_ms) // 2 if at == before else begin_ms))
        before = at
    return _merged(shapes)


def spread(spans: Iterable[tuple[str, int, int]]) -> list[Viseme]:
    """Shapes that fit the letters of texts, each spread over its time from begin to end in milliseconds."""
    shapes: list[tuple[int, int]] = []
    for text, begin_ms, end_ms in spans:
        steps = list(_spelled(_plain(text)))
        total = sum(weight for _, _, weight in steps)
        passed = 0
        for _, viseme_id, weight in steps:
            shapes.append((viseme_id, begin_ms + passed * (end_ms - begin_ms) // total))
            passed += weight
    return _merged(shapes)


def estimate(text: str, duration_ms: int) -> list[Viseme]:
    """Shapes that fit the letters of `text`, spread over `duration_ms`; the mouth is shut at the end."""
    return estimated([(text, 0, duration_ms)])


def estimated(spans: Iterable[tuple[str, int, int]]) -> list[Viseme]:
    """Shapes that fit the letters of texts, as `spread` gives them; the mouth is shut at the end of each."""
    shapes: list[tuple[int, int]] = []
    for text, begin_ms, end_ms in spans:
        if end_ms > begin_ms and (spoken := spread([(text, begin_ms, end_ms)])):
            shapes += ((shape.viseme_id, shape.offset_ms) for shape in spoken)
            shapes.append((_SILENCE, end_ms))
    return _merged(shapes)


def _shapes(phonemes: Iterable[tuple[str, int]]) -> list[tuple[int, int]]:
    shapes: list[tuple[int, int]] = []
    before = ""
    for phoneme, offset_ms in phonemes:
        sound = _sound(phoneme)
        if not sound and phoneme and _MARKS.issuperset(phoneme):
            before = "" if phoneme == " " else before
            continue
        if before and sound and (both := _OF_SOUND.get(before + sound)) is not None:
            shapes[-1] = (both, shapes[-1][1])
            before = ""
            continue
        shapes.append((_shape(sound), offset_ms))
        before = sound
    return shapes


def _sound(phoneme: str) -> str:
    """Without accents, marks and what the table does not know."""
    letters = unicodedata.normalize("NFD", phoneme)
    return "".join(letter for letter in letters if letter in _LETTERS_OF_SOUNDS)


def _shape(sound: str) -> int:
    """Of the longest beginning that is known: `ɛɹ` is shaped like `ɛ`."""
    for end in range(len(sound), 0, -1):
        if (viseme_id := _OF_SOUND.get(sound[:end])) is not None:
            return viseme_id
    return _SILENCE


def _plain(text: str) -> str:
    """Small letters without accents."""
    letters = unicodedata.normalize("NFD", text.lower())
    return "".join(letter for letter in letters if not unicodedata.combining(letter))


def _spelled(letters: str) -> Iterator[tuple[int, int, int]]:
    """Where shapes begin in `letters`, the shapes, and how long they last beside one another."""
    at = 0
    while at < len(letters):
        for length in (3, 2, 1):
            viseme_id = _OF_SPELLING.get(letters[at : at + length])
            if viseme_id is not None:
                yield at, viseme_id, 2 if viseme_id in _VOWELS else 1
                break
        else:
            length = 1
            if letters[at].isalnum():
                for viseme_id, weight in _SYLLABLE:
                    yield at, viseme_id, weight
            elif letters[at] in _PAUSES:
                yield at, _SILENCE, _PAUSES[letters[at]]
        at += length


def _merged(shapes: Iterable[tuple[int, int]]) -> list[Viseme]:
    """A shape that lasts no time gives way to the next one; equal neighbours become one."""
    merged: list[Viseme] = []
    for viseme_id, offset_ms in shapes:
        begin_ms = offset_ms
        if merged and merged[-1].offset_ms >= offset_ms:
            begin_ms = merged.pop().offset_ms
        if not merged or merged[-1].viseme_id != viseme_id:
            merged.append(Viseme(begin_ms, viseme_id))
    return merged
