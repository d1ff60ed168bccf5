"""Pronunciations of English words in the phonemes of CMU's dictionary. espeak-ng provides those of other words."""

import ctypes
import re
from collections.abc import Callable, Sequence
from typing import Any

_UTF8, _IPA = 1, 0x02
_SYNCHRONOUS, _DO_NOT_EXIT = 2, 0x8000
_LANGUAGE_SWITCH = re.compile(r"\([^)]*\)")

_MAX_SYMBOL_LENGTH = 3
_ARPABET = {
    "aɪə": "AY AH", "aʊə": "AW ER", "aɪ": "AY", "aʊ": "AW", "eɪ": "EY", "oʊ": "OW", "əʊ": "OW", "ɔɪ": "OY",  # noqa: RUF001
    "tʃ": "CH", "dʒ": "JH", "ɜː": "ER", "iː": "IY", "uː": "UW", "ɑː": "AA", "ɔː": "AO", "n̩": "AH N",  # noqa: RUF001
    "l̩": "AH L", "ɑ": "AA", "ɒ": "AA", "a": "AA", "æ": "AE", "ʌ": "AH", "ə": "AH", "ɐ": "AH",  # noqa: RUF001
    "ɔ": "AO", "ɛ": "EH", "e": "EH", "ɚ": "ER", "ɜ": "ER", "ø": "ER", "œ": "ER", "ɪ": "IH",  # noqa: RUF001
    "ᵻ": "IH", "i": "IY", "o": "OW", "ʊ": "UH", "u": "UW", "y": "UW", "b": "B", "β": "V",
    "d": "D", "ð": "DH", "f": "F", "g": "G", "ɡ": "G", "ɣ": "G", "h": "HH", "ç": "HH",  # noqa: RUF001
    "k": "K", "x": "K", "q": "K", "l": "L", "ɫ": "L", "ɬ": "L", "ʎ": "L Y", "m": "M",
    "n": "N", "ɲ": "N Y", "ŋ": "NG", "p": "P", "r": "R", "ɹ": "R", "ʁ": "R", "s": "S",
    "ʃ": "SH", "ɕ": "SH", "t": "T", "ɾ": "T", "θ": "TH", "v": "V", "w": "W", "j": "Y",
    "z": "Z", "ʒ": "ZH", "ʑ": "ZH",
}  # fmt: skip


def arpabet(ipa: str) -> list[str]:
    """Return the dictionary phonemes nearest to `ipa`. Stress and other marks are left out."""
    phones: list[str] = []
    position = 0
    while position < len(ipa):
        for length in range(_MAX_SYMBOL_LENGTH, 0, -1):
            if symbols := _ARPABET.get(ipa[position : position + length]):
                phones += symbols.split()
                break
        position += length
    return phones


class Speller:
    """Pronounces words that are not in the dictionary by espeak-ng's rules. The library is loaded on first use."""

    def __init__(self) -> None:
        self._library: Any = None

    def spell(self, word: str) -> list[str]:
        """Return the phonemes of a word, empty if it cannot be pronounced."""
        if self._library is None:
            self._library = _load()
        text = ctypes.c_char_p(word.encode(errors="ignore"))
        position = ctypes.cast(text, ctypes.c_void_p)
        sounds = []
        while position.value:
            phonemes = self._library.espeak_TextToPhonemes(ctypes.byref(position), _UTF8, _IPA)
            sounds.append((phonemes or b"").decode(errors="ignore"))
        return arpabet(_LANGUAGE_SWITCH.sub("", " ".join(sounds)))


def _load() -> Any:
    import espeakng_loader  # noqa: PLC0415 - an extra

    library = ctypes.CDLL(espeakng_loader.get_library_path())
    data = espeakng_loader.get_data_path().encode()
    if library.espeak_Initialize(_SYNCHRONOUS, 0, data, _DO_NOT_EXIT) < 0:
        raise RuntimeError("espeak_Initialize failed")
    library.espeak_SetVoiceByName(b"en-us")
    library.espeak_TextToPhonemes.restype = ctypes.c_char_p
    return library


class Lexicon:
    """The pronunciations of words: those of a dictionary, or else one that follows espeak-ng's rules."""

    def __init__(self, lookup: Callable[[str], str | None]) -> None:
        self._lookup = lookup
        self._speller = Speller()

    def sounds(self, word: str) -> Sequence[str]:
        """Return the pronunciations of `word`, most common first, empty if it has none."""
        return self._look_up(word) or self._spell(word)

    def _look_up(self, word: str) -> list[str]:
        if "(" in word or not (first := self._lookup(word)):
            return []
        variants = [first]
        while more := self._lookup(f"{word}({len(variants) + 1})"):
            variants.append(more)
        return variants

    def _spell(self, word: str) -> list[str]:
        phones = self._speller.spell(word)
        return [" ".join(phones)] if phones else []
