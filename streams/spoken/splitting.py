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
        """Return the sentences of `text`. Lengths are exact, but special spaces are replaced."""
        sentences: list[str] = segment(self._language, text.translate(_SPACES))
        return sentences

    def _cut(self, end: int) -> str:
        sentence, self._tail = self._tail[:end], self._tail[end:]
        self._seen = max(0, self._seen - end)
        return sentence
