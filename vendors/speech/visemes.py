"""Mouth shapes (visemes): from phonemes with times, or estimated from letters if a vendor reports no times.

There are 22 shapes, as defined by vendor A. Phonemes are IPA as produced by espeak-ng and piper. Does no I/O.
"""
# ruff: noqa: RUF001 - IPA letters resemble Latin letters

import unicodedata
from collections.abc import Iterable, Iterator

from vendors.protocols import Viseme

MAX_OFFSET_MS = 24 * 60 * 60 * 1000
"""A later time, which a vendor reports, is none."""
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
_SHAPE_OF_SOUND = {
    unicodedata.normalize("NFD", sound): viseme_id
    for viseme_id, sounds in _SOUNDS.items()
    for sound in sounds.split()
}
_KNOWN_LETTERS = frozenset("".join(_SHAPE_OF_SOUND))
_MARKS = frozenset("ˈˌːˑʔʰʲʷˠˤ˞ʼ ‿|")
"""Marks for stress, length, modification and word gaps, which do not change the shape of the mouth."""

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
_SHAPE_OF_SPELLING = {spelling: viseme_id for viseme_id, row in _SPELLINGS.items() for spelling in row.split()}
_VOWELS = range(1, 12)
_SYLLABLE = ((19, 1), (1, 2))
"""A letter of another script is treated as a consonant and a vowel."""
_PAUSES = dict.fromkeys(",;:،、，；：-–—", 2) | dict.fromkeys(".!?…؟।。！？\n", 4)


def visemes_of(phonemes: Iterable[tuple[str, int]]) -> list[Viseme]:
    """Return the mouth shapes of phonemes with offsets in milliseconds.

    Equal neighbours are merged; an unknown phoneme is silence. Two phonemes that form one sound (`a`, `ʊ`) have one
    shape.
    """
    return _merged(_shapes(phonemes))


def visemes_of_letters(letters: Iterable[tuple[str, int, int]]) -> list[Viseme]:
    """Return the mouth shapes of letters with start and end times in milliseconds, as `estimate` maps them."""
    bare_letters = [
        (sign, begin_ms, end_ms) for letter, begin_ms, end_ms in letters for sign in _without_accents(letter)
    ]
    shapes: list[tuple[int, int]] = []
    previous = -1
    for at, viseme_id, _ in _letter_shapes("".join(sign for sign, _, _ in bare_letters)):
        _, begin_ms, end_ms = bare_letters[at]
        shapes.append((viseme_id, (begin_ms + end_ms) // 2 if at == previous else begin_ms))
        previous = at
    return _merged(shapes)


def spread(spans: Iterable[tuple[str, int, int]]) -> list[Viseme]:
    """Estimate mouth shapes from texts, spread over the time from start to end of each text, in milliseconds."""
    shapes: list[tuple[int, int]] = []
    for text, begin_ms, end_ms in spans:
        steps = list(_letter_shapes(_without_accents(text)))
        total = sum(weight for _, _, weight in steps)
        elapsed = 0
        for _, viseme_id, weight in steps:
            shapes.append((viseme_id, begin_ms + elapsed * (end_ms - begin_ms) // total))
            elapsed += weight
    return _merged(shapes)


def estimate(text: str, duration_ms: int) -> list[Viseme]:
    """Estimate the mouth shapes of `text`, spread over `duration_ms`. The mouth is closed at the end."""
    return estimated([(text, 0, duration_ms)])


def estimated(spans: Iterable[tuple[str, int, int]]) -> list[Viseme]:
    """Like `spread`, but the mouth is closed at the end of each text."""
    shapes: list[tuple[int, int]] = []
    for text, begin_ms, end_ms in spans:
        if end_ms > begin_ms and (spoken := spread([(text, begin_ms, end_ms)])):
            shapes += ((shape.viseme_id, shape.offset_ms) for shape in spoken)
            shapes.append((_SILENCE, end_ms))
    return _merged(shapes)


def _shapes(phonemes: Iterable[tuple[str, int]]) -> list[tuple[int, int]]:
    shapes: list[tuple[int, int]] = []
    previous = ""
    for phoneme, offset_ms in phonemes:
        sound = _sound(phoneme)
        if not sound and phoneme and _MARKS.issuperset(phoneme):
            previous = "" if phoneme == " " else previous
            continue
        if previous and sound and (joint := _SHAPE_OF_SOUND.get(previous + sound)) is not None:
            shapes[-1] = (joint, shapes[-1][1])
            previous = ""
            continue
        shapes.append((_shape(sound), offset_ms))
        previous = sound
    return shapes


def _sound(phoneme: str) -> str:
    """Remove accents, marks and unknown letters from a phoneme."""
    letters = unicodedata.normalize("NFD", phoneme)
    return "".join(letter for letter in letters if letter in _KNOWN_LETTERS)


def _shape(sound: str) -> int:
    """Return the shape of the longest known prefix: `ɛɹ` has the shape of `ɛ`."""
    for end in range(len(sound), 0, -1):
        if (viseme_id := _SHAPE_OF_SOUND.get(sound[:end])) is not None:
            return viseme_id
    return _SILENCE


def _without_accents(text: str) -> str:
    """Return the text in lower case without accents."""
    letters = unicodedata.normalize("NFD", text.lower())
    return "".join(letter for letter in letters if not unicodedata.combining(letter))


def _letter_shapes(letters: str) -> Iterator[tuple[int, int, int]]:
    """Yield the mouth shapes of `letters`: the index of the letter, the shape and its relative duration."""
    at = 0
    while at < len(letters):
        for length in (3, 2, 1):
            viseme_id = _SHAPE_OF_SPELLING.get(letters[at : at + length])
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
    """Drop shapes that last no time and merge equal neighbours."""
    merged: list[Viseme] = []
    for viseme_id, offset_ms in shapes:
        begin_ms = offset_ms
        if merged and merged[-1].offset_ms >= offset_ms:
            begin_ms = merged.pop().offset_ms
        if not merged or merged[-1].viseme_id != viseme_id:
            merged.append(Viseme(begin_ms, viseme_id))
    return merged
