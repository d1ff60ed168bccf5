"""Splits a reply that comes in deltas at its paragraph delimiter. Pure."""

from streams.events import AssistantOutputChunk, AssistantOutputContentSegment

Part = AssistantOutputChunk | AssistantOutputContentSegment
"""A piece of a paragraph; the whole of one, without the delimiter, behind its pieces."""


class Paragraphs:
    """Deltas in, pieces and whole paragraphs out, as events. Delimiters and blank paragraphs are not given out.

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

    def feed(self, delta: str) -> list[Part]:
        if self._said and delta and not self._held and self._delimiter[0] not in delta:
            self._said.append(delta)
            return [AssistantOutputChunk(self._index, delta)]  # as most deltas are
        *whole, tail = (self._held + delta).split(self._delimiter)
        out: list[Part] = []
        for text in whole:
            self._say(text, out)
            self._close(out)
        sure = len(tail) - self._beginning_of_delimiter(tail)
        if not self._said and not tail[:sure].strip():
            sure = 0
        self._held = tail[sure:]
        self._say(tail[:sure], out)
        return out

    def finish(self) -> list[Part]:
        """End of the reply: what was held is text, the last paragraph is whole."""
        out: list[Part] = []
        held, self._held = self._held, ""
        self._say(held.rstrip(), out)
        self._close(out)
        return out

    def _beginning_of_delimiter(self, text: str) -> int:
        for size in range(min(len(self._delimiter) - 1, len(text)), 0, -1):
            if text.endswith(self._delimiter[:size]):
                return size
        return 0

    def _say(self, text: str, out: list[Part]) -> None:
        if text.strip() or (text and self._said):
            self._said.append(text)
            out.append(AssistantOutputChunk(self._index, text))

    def _close(self, out: list[Part]) -> None:
        if self._said:
            out.append(AssistantOutputContentSegment(self._index, "".join(self._said)))
            self._said = []
            self._index += 1
