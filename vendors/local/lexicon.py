"""How English words sound, in the phonemes of CMU's dictionary; what that lacks is spelt out by espeak-ng."""

import ctypes
import re
from collections.abc import Callable, Sequence
from typing import Any

_UTF8, _IPA = 1, 0x02
_SYNCHRONOUS, _DO_NOT_EXIT = 2, 0x8000
_LANGUAGE_SWITCH = re.compile(r"\([^)]*\)")

_LONGEST_SYMBOL = 3
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
    """The phonemes of the dictionary that are nearest to `ipa`; stress and what has no sound are left out."""
    phones: list[str] = []
    at = 0
    while at < len(ipa):
        for length in range(_LONGEST_SYMBOL, 0, -1):
            if found := _ARPABET.get(ipa[at : at + length]):
                phones += found.split()
                break
        at += length
    return phones


class Speller:
    """espeak-ng's rules for words that are in no dictionary: names, numbers, inventions. Loaded by the first."""

    def __init__(self) -> None:
        self._library: Any = None

    def spell(self, word: str) -> list[str]:
        """None at all for what has no sound."""
        if self._library is None:
            self._library = _load()
        text = ctypes.c_char_p(word.encode(errors="ignore"))
        rest = ctypes.cast(text, ctypes.c_void_p)
        sounds = []
        while rest.value:
            told = self._library.espeak_TextToPhonemes(ctypes.byref(rest), _UTF8, _IPA)
            sounds.append((told or b"").decode(errors="ignore"))
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
    """Words as a decoder knows them. A word has one name for each of its places in a grammar."""

    def __init__(
        self, lookup: Callable[[str], str | None], add: Callable[[str, str], object], speller: Speller
    ) -> None:
        self.added = 0
        self._lookup = lookup
        self._add = add
        self._speller = speller
        self._names: dict[tuple[str, int], str] = {}
        self._sounds: dict[str, Sequence[str]] = {}

    def sounds(self, word: str) -> Sequence[str]:
        """Each way in which `word` is said, most usual first; none for what cannot be said."""
        if word not in self._sounds:
            self._sounds[word] = self._known(word) or self._spelt(word)
        return self._sounds[word]

    def name(self, word: str, place: int) -> str:
        """What the decoder calls the word in its `place`-th place."""
        if (word, place) not in self._names:
            name = f"~{len(self._names)}"
            for at, phones in enumerate(self.sounds(word), start=1):
                self._add(name if at == 1 else f"{name}({at})", phones)
                self.added += 1
            self._names[word, place] = name
        return self._names[word, place]

    def _known(self, word: str) -> list[str]:
        if "(" in word or not (first := self._lookup(word)):
            return []
        found = [first]
        while more := self._lookup(f"{word}({len(found) + 1})"):
            found.append(more)
        return found

    def _spelt(self, word: str) -> list[str]:
        phones = self._speller.spell(word)
        return [" ".join(phones)] if phones else []
