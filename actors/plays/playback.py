"""Determine which words of a spoken answer were heard, given how much of its audio was played."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

_CHARACTERS_PER_MS = 0.015
"""Assumed pace while the length of the speech is unknown: 15 characters per second."""
_SILENCE = 0
_WORD = re.compile(r"\S+\s*")
_UNSPACED = re.compile(r"[぀-ヿ㐀-鿿가-힯豈-﫿]")


@dataclass(frozen=True, slots=True)
class _PlayedSentence:
    """A part of paragraph `index` and the position of its audio, relative to the start of the answer's audio."""

    index: int
    text: str
    begin_ms: int
    end_ms: int
    shape_times: tuple[int, ...]
    """Times of its mouth shapes other than silence, in ms; empty if unknown."""

    def heard(self, until_ms: int) -> int:
        """Return the number of characters in words that were spoken completely before `until_ms`."""
        if until_ms >= self.end_ms:
            return len(self.text)
        if self.shape_times:
            share = sum(1 for ms in self.shape_times if ms <= until_ms) / (len(self.shape_times) + 1)
        else:
            share = max(0, until_ms - self.begin_ms) / max(1, self.end_ms - self.begin_ms)
        return _whole_words(self.text, share * len(self.text.rstrip()))


class Playback:
    """The sentences spoken so far, in order, with the position of their audio. All times are in ms."""

    def __init__(self) -> None:
        self._sentences: list[_PlayedSentence] = []
        self._current: tuple[int, str, int] | None = None

    @property
    def began(self) -> bool:
        return bool(self._sentences) or self._current is not None

    def begin(self, index: int, text: str, at_ms: int) -> None:
        """Record that the audio of `text`, a part of paragraph `index`, starts at `at_ms`."""
        self._current = (index, text, at_ms)

    def end(self, at_ms: int, shapes: list[tuple[int, int]]) -> None:
        """Record that the audio of the current text ends at `at_ms`. `shapes` are mouth shapes as `(ms, id)`."""
        assert self._current is not None, "begin() was not called"
        index, text, begin_ms = self._current
        shape_times = tuple(ms for ms, shape in shapes if shape != _SILENCE)
        self._sentences.append(_PlayedSentence(index, text, begin_ms, at_ms, shape_times))
        self._current = None

    def heard(self, until_ms: int) -> Mapping[int, int] | None:
        """Return how many characters of each paragraph were heard, or `None` if all spoken text was heard."""
        sentences = self._with_current()
        if sentences and until_ms >= sentences[-1].end_ms:
            return None
        heard: dict[int, int] = {}
        for sentence in sentences:
            heard[sentence.index] = heard.get(sentence.index, 0) + sentence.heard(until_ms)
            if until_ms < sentence.end_ms:
                break
        return heard

    def _with_current(self) -> list[_PlayedSentence]:
        if self._current is None:
            return self._sentences
        index, text, begin_ms = self._current
        spoken_ms = sum(sentence.end_ms - sentence.begin_ms for sentence in self._sentences)
        characters = sum(len(sentence.text) for sentence in self._sentences)
        pace = characters / spoken_ms if spoken_ms else _CHARACTERS_PER_MS
        return [*self._sentences, _PlayedSentence(index, text, begin_ms, begin_ms + round(len(text) / pace), ())]


def _whole_words(text: str, characters: float) -> int:
    """Return the end of the last word of `text` that lies within its first `characters` characters.

    In scripts without spaces, each character counts as a word.
    """
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
