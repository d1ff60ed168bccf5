"""Sentences of a text that comes in deltas, for a voice. Pure: the split does not depend on the cutting."""

import re

from sentencex import segment

_TAIL_LIMIT = 1000
_WHOLE_WORD = re.compile(r"\S\s")
_FULL_STOP = re.compile(r"[。！？｡]\s*$")  # noqa: RUF001 - the stops of scripts without spaces
_BREAK = re.compile(r"\n+")


class Sentences:
    """A sentence is let go once a whole next word is seen, or after a stop of a script without spaces.

    No character is lost or moved: the sentences joined are the text. A tail without an end is cut at a space.
    """

    def __init__(self, language_code: str) -> None:
        self._language = language_code.partition("-")[0].lower() or "en"
        self._tail = ""

    def feed(self, delta: str) -> list[str]:
        self._tail += delta
        done: list[str] = []
        parts = self._parts()
        while len(parts) > 1:
            rest = "".join(parts[1:]).lstrip()
            if not (_WHOLE_WORD.search(rest) or (rest and _FULL_STOP.search(parts[0]))):
                break
            done.append(parts.pop(0))
        tail = "".join(parts)
        while len(tail) > _TAIL_LIMIT:
            cut = tail.rfind(" ", 1, _TAIL_LIMIT) + 1 or _TAIL_LIMIT
            done.append(tail[:cut])
            tail = tail[cut:]
        self._tail = tail
        return done

    def finish(self) -> list[str]:
        """End of a paragraph: all that is left."""
        parts, self._tail = self._parts(), ""
        return parts

    def _parts(self) -> list[str]:
        """The tail as sentences whose join is the tail."""
        parts: list[str] = []
        begin = 0
        for sentence in segment(self._language, self._tail):
            end = self._tail.find(sentence, begin) + len(sentence)
            parts.append(self._tail[begin:end])
            begin = end
        if begin < len(self._tail):
            if parts:
                parts[-1] += self._tail[begin:]
            else:
                parts.append(self._tail)
        return parts


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
    text = re.sub(r"[*_`~]{1,3}(?=\S)|(?<=\S)[*_`~]{1,3}", "", text)
    text = _BREAK.sub(" ", text).strip()
    return text if re.search(r"\w", text) else ""
