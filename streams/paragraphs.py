"""Splits a reply that comes in deltas at its paragraph delimiter. Pure."""

from dataclasses import dataclass


@dataclass(slots=True)
class Piece:
    """A piece of paragraph `index`."""

    index: int
    text: str


@dataclass(slots=True)
class Close:
    """Paragraph `index` is whole: `text` is all of it, without the delimiter."""

    index: int
    text: str


class Paragraphs:
    """Deltas in, pieces and closed paragraphs out. Delimiters are not given out, blank paragraphs not counted.

    What could be the beginning of a delimiter, or of a blank paragraph, is held until it is known.
    """

    __slots__ = ("_delimiter", "_held", "_index", "_said")

    def __init__(self, delimiter: str) -> None:
        self._delimiter = delimiter
        self._index = 0
        self._held = ""
        self._said: list[str] = []

    @property
    def open_text(self) -> str:
        """What was given out of the paragraph that is not closed."""
        return "".join(self._said)

    @property
    def open_index(self) -> int:
        return self._index

    def feed(self, delta: str) -> list[Piece | Close]:
        if self._said and delta and not self._held and self._delimiter[0] not in delta:
            self._said.append(delta)
            return [Piece(self._index, delta)]  # as most deltas are
        *whole, tail = (self._held + delta).split(self._delimiter)
        out: list[Piece | Close] = []
        for text in whole:
            self._say(text, out)
            self._close(out)
        sure = len(tail) - self._beginning_of_delimiter(tail)
        if not self._said and not tail[:sure].strip():
            sure = 0
        self._held = tail[sure:]
        self._say(tail[:sure], out)
        return out

    def finish(self) -> list[Piece | Close]:
        """End of the reply: what was held is text, the last paragraph is whole."""
        out: list[Piece | Close] = []
        held, self._held = self._held, ""
        self._say(held.rstrip(), out)
        self._close(out)
        return out

    def _beginning_of_delimiter(self, text: str) -> int:
        for size in range(min(len(self._delimiter) - 1, len(text)), 0, -1):
            if text.endswith(self._delimiter[:size]):
                return size
        return 0

    def _say(self, text: str, out: list[Piece | Close]) -> None:
        if text.strip() or (text and self._said):
            self._said.append(text)
            out.append(Piece(self._index, text))

    def _close(self, out: list[Piece | Close]) -> None:
        if self._said:
            out.append(Close(self._index, "".join(self._said)))
            self._said = []
            self._index += 1
