"""How far an answer was heard: which of its words had been spoken when the listener stopped listening."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

_CHARACTERS_A_MS = 0.015
"""Of speech whose length nobody knows yet: 15 a second."""
_SILENCE = 0
_WORD = re.compile(r"\S+\s*")
_UNSPACED = re.compile(r"[぀-ヿ㐀-鿿가-힯豈-﫿]")


@dataclass(frozen=True, slots=True)
class _PlayedSentence:
    """A piece of paragraph `index`, and where its audio lies; times count from the answer's first audio."""

    index: int
    text: str
    begin_ms: int
    end_ms: int
    shapes: tuple[int, ...]
    """Where mouths move in it, as far as that is known."""

    def heard(self, until_ms: int) -> int:
        """How many of its characters belong to words that were spoken whole."""
        if until_ms >= self.end_ms:
            return len(self.text)
        if self.shapes:
            share = sum(1 for at in self.shapes if at <= until_ms) / (len(self.shapes) + 1)
        else:
            share = max(0, until_ms - self.begin_ms) / max(1, self.end_ms - self.begin_ms)
        return _whole_words(self.text, share * len(self.text.rstrip()))


class Playback:
    """What was spoken so far, in order."""

    def __init__(self) -> None:
        self._spans: list[_PlayedSentence] = []
        self._open: tuple[int, str, int] | None = None

    @property
    def began(self) -> bool:
        return bool(self._spans) or self._open is not None

    def begin(self, index: int, text: str, at_ms: int) -> None:
        """`text` of paragraph `index` begins to be spoken."""
        self._open = (index, text, at_ms)

    def end(self, at_ms: int, shapes: list[tuple[int, int]]) -> None:
        """It is spoken whole; `shapes` are its mouth shapes as `(ms, id)`."""
        assert self._open is not None, "what ends has begun"
        index, text, begin_ms = self._open
        moving = tuple(at for at, shape in shapes if shape != _SILENCE)
        self._spans.append(_PlayedSentence(index, text, begin_ms, at_ms, moving))
        self._open = None

    def heard(self, until_ms: int) -> Mapping[int, int] | None:
        """How many characters of each paragraph were heard; none where all that was spoken was."""
        spans = self._all()
        if spans and until_ms >= spans[-1].end_ms:
            return None
        heard: dict[int, int] = {}
        for span in spans:
            heard[span.index] = heard.get(span.index, 0) + span.heard(until_ms)
            if until_ms < span.end_ms:
                break
        return heard

    def _all(self) -> list[_PlayedSentence]:
        if self._open is None:
            return self._spans
        index, text, begin_ms = self._open
        spoken_ms = sum(span.end_ms - span.begin_ms for span in self._spans)
        pace = sum(len(span.text) for span in self._spans) / spoken_ms if spoken_ms else _CHARACTERS_A_MS
        return [*self._spans, _PlayedSentence(index, text, begin_ms, begin_ms + round(len(text) / pace), ())]


def _whole_words(text: str, characters: float) -> int:
    """The end of the last word of `text` within so many characters; without blanks each character is one."""
    end = 0
    for word in _WORD.finditer(text):
        spoken = word.start() + len(word.group().rstrip())
        if spoken <= characters:
            end = spoken
        elif _UNSPACED.search(word.group()):
            return max(end, int(characters))
        else:
            break
    return end
