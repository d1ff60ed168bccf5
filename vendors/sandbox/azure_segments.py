"""Where somebody speaks in a stream of PCM, as far as loudness tells. Pure."""

from array import array
from dataclasses import dataclass, field

WINDOW_MS = 100
_SILENT = 200
_PAUSE_MS = 500
"""So long a silence ends what was said."""
_TOLD_EVERY = 5


@dataclass(frozen=True, slots=True)
class SpeechSegment:
    """Speech from `begin_ms` to `end_ms`: at its start `begun`, then now and then, at last `ended`."""

    begin_ms: int
    end_ms: int
    begun: bool = False
    ended: bool = False


@dataclass(slots=True)
class Segments:
    """Fed with 16-bit mono samples; what it finds does not depend on how they are cut."""

    sample_rate: int
    now_ms: int = 0
    _held: bytearray = field(default_factory=bytearray)
    _begin_ms: int | None = None
    _loud_ms: int = 0
    _windows: int = 0

    def feed(self, pcm: bytes) -> list[SpeechSegment]:
        self._held += pcm
        size = self.sample_rate * WINDOW_MS // 1000 * 2
        found: list[SpeechSegment] = []
        while len(self._held) >= size:
            found += self._take(bytes(self._held[:size]))
            del self._held[:size]
        return found

    def end(self) -> list[SpeechSegment]:
        """The input is over."""
        found = self._take(bytes(self._held[: len(self._held) // 2 * 2])) if len(self._held) > 1 else []
        self._held.clear()
        return found + self._finish()

    def _take(self, window: bytes) -> list[SpeechSegment]:
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
        return [] if self._windows % _TOLD_EVERY else [SpeechSegment(self._begin_ms, self.now_ms)]

    def _finish(self) -> list[SpeechSegment]:
        if self._begin_ms is None:
            return []
        begin_ms, self._begin_ms = self._begin_ms, None
        return [SpeechSegment(begin_ms, self._loud_ms, ended=True)]
