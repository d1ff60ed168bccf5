"""Sentences of a text that comes in deltas, for a voice. Pure: the split does not depend on the cutting."""

import re

from sentencex import segment

_LIMIT = 1000
_STOPS = "。！？｡"  # noqa: RUF001 - of scripts without spaces
_CLOSERS = "」』”’）】》"  # noqa: RUF001
_POINT = re.compile(rf"(?<=\S)\s|(?<=[\s{_STOPS}{_CLOSERS}])\S")
"""Where a word ends or begins: there, and only there, it is asked whether a sentence is over."""
_WHOLE_WORD = re.compile(r"\S\s")
_FULL_STOP = re.compile(rf"[{_STOPS}][{_CLOSERS}]*\s*$")
_BREAK = re.compile(r"\n+")
_EMPHASIS = re.compile(r"(?<![A-Za-z0-9])[*_`~]{1,3}(?=\S)|(?<=\S)[*_`~]{1,3}(?![A-Za-z0-9])")
"""Not in the midst of a word: `2*3` and `first_name` are said as they stand."""
_SPACES = dict.fromkeys((0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000), " ")
"""The segmenter panics where one of these stands between an initial and its stop."""


class Sentences:
    """A sentence is let go once a whole next word is seen, or after a stop of a script without spaces.

    No character is lost or moved: the sentences joined are the text. A text without an end is cut at a space.
    """

    def __init__(self, language_code: str) -> None:
        self._language = language_code.partition("-")[0].lower() or "en"
        self._tail = ""
        self._seen = 0

    def feed(self, delta: str) -> list[str]:
        self._tail += delta
        done: list[str] = []
        while True:
            if point := _POINT.search(self._tail, self._seen, _LIMIT):
                self._seen = point.end()
                while end := self._sure_end():
                    done.append(self._cut(end))
            elif len(self._tail) > _LIMIT:
                done.append(self._cut(self._tail.rfind(" ", 1, _LIMIT) + 1 or _LIMIT))
            else:
                self._seen = len(self._tail)
                return done

    def finish(self) -> list[str]:
        """End of a paragraph: all that is left."""
        return [self._cut(len(sentence)) for sentence in self._segments(self._tail)]

    def _sure_end(self) -> int:
        """Where the first sentence ends, as far as the text was seen; 0 while that is not sure."""
        seen = self._tail[: self._seen]
        sentences = self._segments(seen)
        if len(sentences) < 2:
            return 0
        end = len(sentences[0])
        rest = seen[end:].lstrip()
        sure = _WHOLE_WORD.search(rest) or (rest and _FULL_STOP.search(sentences[0]))
        return end if sure else 0

    def _segments(self, text: str) -> list[str]:
        """Strings as long as the sentences of `text`, one after the other."""
        sentences: list[str] = segment(self._language, text.translate(_SPACES))
        return sentences

    def _cut(self, end: int) -> str:
        sentence, self._tail = self._tail[:end], self._tail[end:]
        self._seen = max(0, self._seen - end)
        return sentence


def merged(sentences: list[str], limit: int) -> tuple[str, int]:
    """As many whole sentences from the front as fit `limit` characters (at least one), and their count."""
    text, count = sentences[0], 1
    while count < len(sentences) and len(text) + len(sentences[count]) <= limit:
        text += sentences[count]
        count += 1
    return text, count


def speakable(text: str) -> str:
    """`text` without Markdown's marks, for a voice; blank where nothing is left to say."""
    text = re.sub(r"```.*?(```|$)", " ", text, flags=re.DOTALL)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"^\s{0,3}(#{1,6}\s+|[-*+]\s+|>\s?|\d+\.\s+(?=\S))", "", text, flags=re.MULTILINE)
    text = _EMPHASIS.sub("", text)
    text = _BREAK.sub(" ", text).strip()
    return text if re.search(r"[^\W_]", text) else ""
