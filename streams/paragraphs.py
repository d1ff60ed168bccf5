"""Split a reply that arrives in deltas at its paragraph delimiter."""

from streams.events import AssistantOutputChunk, AssistantOutputContentSegment

Part = AssistantOutputChunk | AssistantOutputContentSegment
"""A piece of a paragraph, or the complete paragraph without its delimiter, which follows its pieces."""


class Paragraphs:
    """Turn deltas into events: pieces of paragraphs and complete paragraphs.

    Delimiters and blank paragraphs are dropped. Text that may be the beginning of a delimiter or of a blank
    paragraph is held back until more text decides it.
    """

    __slots__ = ("_delimiter", "_emitted", "_held", "_index")

    def __init__(self, delimiter: str) -> None:
        self._delimiter = delimiter
        self._index = 0
        self._held = ""
        self._emitted: list[str] = []

    @property
    def delimiter(self) -> str:
        return self._delimiter

    def resume(self, index: int, open_text: str) -> None:
        """Continue a reply that another process has begun, in paragraph `index`."""
        self._index = index
        self._emitted = [open_text] if open_text else []

    @property
    def open_text(self) -> str:
        """The text emitted so far of the unfinished paragraph."""
        return "".join(self._emitted)

    @property
    def open_index(self) -> int:
        return self._index

    def feed(self, delta: str) -> list[Part]:
        if self._emitted and delta and not self._held and self._delimiter[0] not in delta:
            self._emitted.append(delta)
            return [AssistantOutputChunk(self._index, delta)]  # Fast path: it covers most deltas.
        *complete, tail = (self._held + delta).split(self._delimiter)
        out: list[Part] = []
        for text in complete:
            self._emit(text, out)
            self._close(out)
        ready = len(tail) - self._partial_delimiter(tail)
        if not self._emitted and not tail[:ready].strip():
            ready = 0
        self._held = tail[ready:]
        self._emit(tail[:ready], out)
        return out

    def finish(self) -> list[Part]:
        """End the reply: emit the text held back and complete the last paragraph."""
        out: list[Part] = []
        held, self._held = self._held, ""
        self._emit(held.rstrip(), out)
        self._close(out)
        return out

    def _partial_delimiter(self, text: str) -> int:
        """Return the length of the longest beginning of the delimiter that `text` ends with."""
        for size in range(min(len(self._delimiter) - 1, len(text)), 0, -1):
            if text.endswith(self._delimiter[:size]):
                return size
        return 0

    def _emit(self, text: str, out: list[Part]) -> None:
        if text.strip() or (text and self._emitted):
            self._emitted.append(text)
            out.append(AssistantOutputChunk(self._index, text))

    def _close(self, out: list[Part]) -> None:
        if self._emitted:
            out.append(AssistantOutputContentSegment(self._index, "".join(self._emitted)))
            self._emitted = []
            self._index += 1
