"""Split text that arrives in deltas into sentences for speech synthesis.

The result does not depend on how the text is divided into deltas.
"""

import re
from collections.abc import Iterator

from sentencex import segment

from streams.languages import language_of
from streams.spoken.labels import NAMES

_LIMIT = 1000
_STOPS = "。！？｡"  # noqa: RUF001 - full stops of scripts without spaces
_CLOSING_MARKS = "」』”’）】》"  # noqa: RUF001
_POINT = re.compile(rf"(?<=\S)\s|(?<=[\s{_STOPS}{_CLOSING_MARKS}])\S")
"""The start and the end of words. Only there does `Sentences` check whether a sentence is complete."""
_MAY_END = re.compile(r"[^\w \t,:;'\"()*`#/|-]")
_MAY_END_WITH_COLON = re.compile(r"[^\w \t,'\"()*`#/|-]")
"""What the end of a sentence has. The segmenter is slow, and not asked about text without it."""
_LANGUAGES_WITH_COLONS = frozenset(("el", "hy"))
"""Languages in which the segmenter ends sentences at a colon or semicolon."""
_WHOLE_WORD = re.compile(r"\S\s")
_FULL_STOP = re.compile(rf"[{_STOPS}][{_CLOSING_MARKS}]*\s*$")
_NAME = re.compile(r"(?<![^\s`(\"'])\.(?=[\w\\/])")
"""The point at the beginning of a name such as `.NET`, which ends no sentence."""
_NO_SENTENCE = re.compile(rf"\W*(?:\d{{1,9}}|[^\W\d_]|[ivx]{{2,5}}|{NAMES})\\?[.)．]\)?[*_]*\s*")  # noqa: RUF001
"""A number, a label or an initial: that of a heading or an item, or `M.` before a name."""
_ORDINAL = re.compile(r"(?<!\S)[*_]{0,3}(\d{1,2})\.[*_]{0,3}\s*$")
_NUMBER = re.compile(r"(?<!\S)[*_]{0,3}(\d{1,2})\.(?=[*_\s])")
_AT_LINE_START = re.compile(r"(?:^|\n)[ \t]*[*_]{0,3}\d{1,2}\.[*_]{0,3}\s*$")
_LABEL_AT_LINE_START = re.compile(rf"\n[ \t]*[*_]{{0,3}}(?:{NAMES})\.[*_]{{0,3}}\s*$")
_LANGUAGES_WITH_ORDINALS = frozenset(
    ("cs", "da", "de", "et", "fi", "hr", "hu", "is", "lv", "nn", "no", "pl", "sk", "sl", "sr", "tr")
)
"""Languages that write ordinal numbers with a point: `der 2. Platz`."""
_LONGEST_LABEL = 30
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
        self._may_end = _MAY_END_WITH_COLON if self._language in _LANGUAGES_WITH_COLONS else _MAY_END
        self._endless = 0
        """The length of the beginning of the tail that has no end of a sentence."""
        self._number = 0
        """The last number before the tail that may be one of an enumeration, such as that of an item or a step."""

    def begin_item(self, number: str) -> None:
        """Begin an item with a number that is not part of its text."""
        self._number = int(number)

    def feed(self, delta: str) -> list[str]:
        if len(delta) <= _LIMIT:
            return self._fed(delta)
        # Sentences are cut from the front of the tail, which is copied: it must not be long.
        parts = (delta[at : at + _LIMIT] for at in range(0, len(delta), _LIMIT))
        return [sentence for part in parts for sentence in self._fed(part)]

    def _fed(self, delta: str) -> list[str]:
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
        return [self._cut(len(sentence)) for sentence in list(self._joined(self._segments(self._tail)))]

    @property
    def tail(self) -> str:
        """The text that no returned sentence has."""
        return self._tail

    def without_end(self, length: int) -> str:
        """Take the last `length` characters of `tail` away, and return them."""
        kept = len(self._tail) - length
        end, self._tail = self._tail[kept:], self._tail[:kept]
        self._seen = min(self._seen, kept)
        self._endless = min(self._endless, kept)
        return end

    def _certain_end(self) -> int:
        """Return the end of the first sentence, or 0 while more text could still extend it."""
        if not self._may_end.search(self._tail, self._endless, self._seen):
            self._endless = self._seen
            return 0
        seen = self._tail[: self._seen]
        segments = self._segments(seen)
        if len(segments) < 2:
            return 0
        first = next(self._joined(segments))
        rest = seen[len(first) :].lstrip()
        is_certain = _WHOLE_WORD.search(rest) or (rest and _FULL_STOP.search(first))
        return len(first) if is_certain else 0

    def _segments(self, text: str) -> list[str]:
        """Return the segmenter's sentences of `text`. Lengths are exact, but special characters are replaced."""
        if "." in text:
            text = _NAME.sub("_", text)
        if not text.isascii():
            text = text.translate(_SPACES)
        sentences: list[str] = segment(self._language, text)
        return sentences

    def _joined(self, segments: list[str]) -> Iterator[str]:
        """Join segments where the segmenter was wrong to end a sentence."""
        begin = ""
        for sentence in segments:
            begin += sentence
            if not self._continues(begin):
                yield begin
                begin = ""
        if begin:
            yield begin

    def _continues(self, text: str) -> bool:
        """Return whether the segmenter was wrong to end a sentence after `text`."""
        if _NO_SENTENCE.fullmatch(text):
            return True
        if len(text) > _MAX_JOINED:
            return False
        is_struck = text.count("~~") % 2  # The end of the text that is struck through, and not spoken, follows.
        if is_struck or _LABEL_AT_LINE_START.search(text, len(text) - _LONGEST_LABEL):
            return True
        ordinal = _ORDINAL.search(text, len(text) - 8)
        if ordinal is None:
            return False
        before = int(ordinal[1]) - 1
        if before in {0, self._number} or f"{before}. " in text:
            return True  # In an enumeration: `1. this 2. that`.
        return self._language in _LANGUAGES_WITH_ORDINALS or bool(_AT_LINE_START.search(text, len(text) - 12))

    def _cut(self, end: int) -> str:
        sentence, self._tail = self._tail[:end], self._tail[end:]
        self._seen, self._endless = max(0, self._seen - end), max(0, self._endless - end)
        if "." in sentence and (numbers := _NUMBER.findall(sentence)):
            self._number = int(numbers[-1])
        return sentence
