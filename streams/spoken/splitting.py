"""Split text that arrives in deltas into sentences for speech synthesis.

The result does not depend on how the text is divided into deltas.
"""

import re

from sentencex import segment

from streams.languages import language_of

_LIMIT = 1000
_STOPS = "。！？｡"  # noqa: RUF001 - full stops of scripts without spaces
_CLOSING_MARKS = "」』”’）】》"  # noqa: RUF001
_POINT = re.compile(rf"(?<=\S)\s|(?<=[\s{_STOPS}{_CLOSING_MARKS}])\S")
"""The start and the end of words. Only there does `Sentences` check whether a sentence is complete."""
_WHOLE_WORD = re.compile(r"\S\s")
_FULL_STOP = re.compile(rf"[{_STOPS}][{_CLOSING_MARKS}]*\s*$")
_NAME = re.compile(r"(?<![^\s`(\"'])\.(?=[\w\\/])")
"""The point at the beginning of a name such as `.NET`, which ends no sentence."""
_NO_SENTENCE = re.compile(r"\W*(?:\d{1,9}|[^\W\d_])[.)]\s*")
"""A number or an initial: the number of a heading, or `M.` before a name."""
_ORDINAL = re.compile(r"(?<!\S)(\d{1,2})\.\s*$")
_LANGUAGES_WITH_ORDINALS = frozenset(
    ("cs", "da", "de", "et", "fi", "hr", "hu", "is", "lv", "nn", "no", "pl", "sk", "sl", "sr", "tr")
)
"""Languages that write ordinal numbers with a point: `der 2. Platz`."""
_MAX_JOINED = 200
"""An endless enumeration must not delay the speech."""
_SPACES = dict.fromkeys((0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000), " ")
"""Spaces that are replaced for the segmenter, which panics if one of them follows an initial."""


class Sentences:
    """Return a sentence once the next word is complete, or after a full stop of a script without spaces.

    The sentences joined are exactly the text. A sentence of more than 1,000 characters is cut at a space.
    """

    def __init__(self, language_code: str) -> None:
        self._language = language_of(language_code) or "en"
        self._tail = ""
        self._seen = 0

    def feed(self, delta: str) -> list[str]:
        self._tail += delta
        done: list[str] = []
        while True:
            if point := _POINT.search(self._tail, self._seen, _LIMIT):
                self._seen = point.end()
                while end := self._certain_end():
                    done.append(self._cut(end))
            elif len(self._tail) > _LIMIT:
                done.append(self._cut(self._tail.rfind(" ", 1, _LIMIT) + 1 or _LIMIT))
            else:
                self._seen = len(self._tail)
                return done

    def finish(self) -> list[str]:
        """End the paragraph and return the remaining sentences."""
        return [self._cut(len(sentence)) for sentence in self._segments(self._tail)]

    @property
    def tail(self) -> str:
        """The text that no returned sentence has."""
        return self._tail

    def without_end(self, length: int) -> str:
        """Take the last `length` characters of `tail` away, and return them."""
        kept = len(self._tail) - length
        end, self._tail = self._tail[kept:], self._tail[:kept]
        self._seen = min(self._seen, kept)
        return end

    def _certain_end(self) -> int:
        """Return the end of the first sentence, or 0 while more text could still extend it."""
        seen = self._tail[: self._seen]
        sentences = self._segments(seen)
        if len(sentences) < 2:
            return 0
        end = len(sentences[0])
        rest = seen[end:].lstrip()
        is_certain = _WHOLE_WORD.search(rest) or (rest and _FULL_STOP.search(sentences[0]))
        return end if is_certain else 0

    def _segments(self, text: str) -> list[str]:
        """Return the sentences of `text`. Lengths are exact, but special characters are replaced."""
        if "." in text:
            text = _NAME.sub("_", text)
        if not text.isascii():
            text = text.translate(_SPACES)
        sentences: list[str] = segment(self._language, text)
        if len(sentences) < 2:
            return sentences
        joined, begin = [], ""
        for sentence in sentences:
            begin += sentence
            if not self._continues(begin):
                joined.append(begin)
                begin = ""
        return [*joined, begin] if begin else joined

    def _continues(self, text: str) -> bool:
        """Return whether the segmenter was wrong to end a sentence after `text`."""
        if _NO_SENTENCE.fullmatch(text):
            return True
        if len(text) > _MAX_JOINED:
            return False
        ordinal = _ORDINAL.search(text, len(text) - 8)
        if ordinal is None:
            return False
        before = f"{int(ordinal[1]) - 1}. "  # In an enumeration within a sentence: `1. this 2. that`.
        return self._language in _LANGUAGES_WITH_ORDINALS or before == "0. " or before in text

    def _cut(self, end: int) -> str:
        sentence, self._tail = self._tail[:end], self._tail[end:]
        self._seen = max(0, self._seen - end)
        return sentence
