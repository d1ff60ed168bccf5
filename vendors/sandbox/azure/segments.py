"""Detect speech in a stream of PCM audio by its loudness. This module does no I/O."""

from array import array
from dataclasses import dataclass, field

WINDOW_MS = 100
_SILENT = 200
_PAUSE_MS = 500
"""A silence of this length ends a segment."""
_REPORT_EVERY = 5


@dataclass(frozen=True, slots=True)
class SpeechSegment:
    """Speech from `begin_ms` to `end_ms`.

    A segment is reported at its beginning (`begun`), periodically, and at its end (`ended`).
    """

    begin_ms: int
    end_ms: int
    begun: bool = False
    ended: bool = False


@dataclass(slots=True)
class Segments:
    """Detects segments in 16-bit mono samples. The result does not depend on how the input is split."""

    sample_rate: int
    now_ms: int = 0
    _buffer: bytearray = field(default_factory=bytearray)
    _begin_ms: int | None = None
    _loud_ms: int = 0
    _windows: int = 0

    def feed(self, pcm: bytes) -> list[SpeechSegment]:
        self._buffer += pcm
        size = self.sample_rate * WINDOW_MS // 1000 * 2
        segments: list[SpeechSegment] = []
        while len(self._buffer) >= size:
            segments += self._feed_window(bytes(self._buffer[:size]))
            del self._buffer[:size]
        return segments

    def end(self) -> list[SpeechSegment]:
        """Process the end of the input."""
        segments = (
            self._feed_window(bytes(self._buffer[: len(self._buffer) // 2 * 2])) if len(self._buffer) > 1 else []
        )
        self._buffer.clear()
        return segments + self._finish()

    def _feed_window(self, window: bytes) -> list[SpeechSegment]:
        samples = array("h", window)
        loud = any(abs(sample) > _SILENT for sample in samples)
        begin_ms = self.now_ms
        self.now_ms += len(samples) * 1000 // self.sample_rate
        if not loud:
            return self._finish() if self.now_ms - self._loud_ms >= _PAUSE_MS else []
        self._loud_ms = self.now_ms
        if self._begin_ms is None:
            self._begin_ms = begin_ms
            self._windows = 0
            return [SpeechSegment(begin_ms, self.now_ms, begun=True)]
        self._windows += 1
        return [] if self._windows % _REPORT_EVERY else [SpeechSegment(self._begin_ms, self.now_ms)]

    def _finish(self) -> list[SpeechSegment]:
        if self._begin_ms is None:
            return []
        begin_ms, self._begin_ms = self._begin_ms, None
        return [SpeechSegment(begin_ms, self._loud_ms, ended=True)]
