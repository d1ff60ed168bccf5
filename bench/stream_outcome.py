"""Check an event stream from the bytes of its chunked HTTP body, without I/O.

An `EventCounter` counts events at little cost and is used for every stream. A `StreamParser` parses every event; it
is used for a sample of the streams.
"""

import re
from base64 import b64decode
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from streams.wire.codec import loads

_ID = b"\nid: "
_LAST_EVENT = b"\nevent: e"
"""Only the names `end` and `error` begin with this letter."""
_LAST = re.compile(rb"\nid: (\d+)\nevent: (end|error)\ndata: ([^\r\n]*)")
_LAST_CHUNK = b"\r\n0\r\n\r\n"
_TAIL_BYTES = 64
"""More bytes than there are between the end of a line and the name of the next event."""
DIGESTED_FIELDS = {
    "assistant_output_chunk": "text",
    "assistant_output_audio_chunk": "audio",
    "audio_chunk": "audio",
}
"""The events that the digest covers, with the field of their content that holds text or audio."""


class EventCounter:
    """Counts the events of a chunked body, and finds its first output and its last event.

    It searches the raw bytes for lines with an event id. JSON contains no raw line breaks, so nothing else looks
    like such a line. If a proxy splits the server's chunks within such a line, the event is missed and reported as
    a fault.
    """

    __slots__ = ("_final", "_marker", "_tail", "begun", "events")

    def __init__(self, marker: bytes) -> None:
        """`marker` is the name of the event that counts as the first output."""
        self.events = 0
        self.begun = False
        """Whether the first output has arrived."""
        self._marker = b"\nevent: %b\n" % marker
        self._tail = b"\n"
        self._final: bytes | None = None

    def feed(self, data: bytes) -> int:
        """Process the next bytes of the body, and return the number of events that begin in them."""
        tail = self._tail
        window = tail + data
        count = window.count(_ID, max(0, len(tail) - len(_ID) + 1))
        self.events += count
        if not self.begun and self._marker in window:
            self.begun = True
        if self._final is not None:
            self._final += data
        elif (at := window.find(_LAST_EVENT)) >= 0:
            self._final = window[max(0, at - _TAIL_BYTES) :]
        self._tail = window[-_TAIL_BYTES:]
        return count

    @property
    def complete(self) -> bool:
        """Whether the last chunk has arrived."""
        return self._tail.endswith(_LAST_CHUNK)

    def outcome(self) -> tuple[str, str]:
        """Return the outcome (`end`, or `error` followed by the error type), and what is wrong with the stream."""
        last = _LAST.search(self._final or b"")
        if last is None:
            return "", "no last event"
        if int(last[1]) != self.events:
            return "", f"{self.events} events arrived, but the last has the id {int(last[1])}"
        return outcome_of(last[2].decode(), last[3]), ""


def outcome_of(name: str, data: bytes) -> str:
    """Return the outcome of a stream from its last event: `end`, or `error` followed by the error type."""
    return name if name == "end" else f"error {loads(data)['content']['error']['error_type']}"


@dataclass(frozen=True, slots=True)
class Event:
    """An event of a stream. `id` is 0 if the event has none."""

    id: int
    name: str
    data: bytes


class Chunks:
    """Decodes a chunked HTTP body."""

    __slots__ = ("_raw", "complete")

    def __init__(self) -> None:
        self.complete = False
        self._raw = bytearray()

    def feed(self, data: bytes) -> bytes:
        """Return the content of the chunks that `data` completes. Raise `ValueError` if they are malformed."""
        raw, content = self._raw, b""
        raw += data
        while not self.complete and (line := raw.find(b"\r\n")) >= 0:
            size = int(raw[:line], 16)
            end = line + 2 + size
            if len(raw) < end + 2:
                break
            content += raw[line + 2 : end]
            self.complete = size == 0
            del raw[: end + 2]
        return content


class StreamParser:
    """Parses a stream in full. It checks that ids have no gap, that one last event ends it, and the digest."""

    __slots__ = ("_chars", "_chunks", "_last_id", "_needs_digest", "_partial", "_sha", "fault", "outcome", "texts")

    def __init__(self, *, needs_digest: bool = True) -> None:
        self.outcome = ""
        self.fault = ""
        """The first fault; empty if there is none."""
        self.texts: list[str] = []
        """The texts of the events that the latest call of `feed()` completed."""
        self._needs_digest = needs_digest
        self._chunks = Chunks()
        self._partial = b""
        self._last_id = 0
        self._chars = 0
        self._sha = sha256()

    def feed(self, data: bytes) -> list[Event]:
        """Process the next bytes of the body, and return the events that they complete."""
        self.texts = []
        try:
            *frames, self._partial = (self._partial + self._chunks.feed(data)).split(b"\n\n")
            events = [event_of(frame) for frame in frames]
            for event in events:
                self._handle(event)
        except (ValueError, KeyError, TypeError) as error:
            self._add_fault(f"cannot be parsed: {error!r}")
            return []
        return events

    def end(self) -> None:
        """Check the stream once its body has ended."""
        if not self.outcome:
            self._add_fault("no last event")
        if self._partial:
            self._add_fault(f"ends in the middle of an event: {self._partial[:80]!r}")

    def _handle(self, event: Event) -> None:
        if event.name == "ping" and not event.id:
            return
        if self.outcome:
            self._add_fault(f"{event.name} after the last event")
        if event.id != self._last_id + 1:
            self._add_fault(f"gap: event {event.id} follows {self._last_id}")
        self._last_id = event.id
        if (field := DIGESTED_FIELDS.get(event.name)) is not None:
            self._add_output(loads(event.data)["content"][field], is_text=field == "text")
        elif event.name in {"end", "error"}:
            self.outcome = outcome_of(event.name, event.data)
            if event.name == "end" and self._needs_digest:
                self._check_digest(loads(event.data)["content"]["digest"])

    def _add_output(self, output: str, *, is_text: bool) -> None:
        if is_text:
            self.texts.append(output)
            self._chars += len(output)
        self._sha.update(output.encode() if is_text else b64decode(output, validate=True))

    def _check_digest(self, digest_of_end: dict[str, Any]) -> None:
        digest = {"chars": self._chars, "sha256": self._sha.hexdigest()}
        if digest_of_end != digest:
            self._add_fault(f"the digest of `end` is {digest_of_end}, of the received content {digest}")

    def _add_fault(self, fault: str) -> None:
        self.fault = self.fault or fault


def event_of(frame: bytes) -> Event:
    """Parse one event without the blank line at its end. Raise `ValueError` or `KeyError` if it is malformed."""
    fields = dict(line.split(b": ", 1) for line in frame.split(b"\n"))
    return Event(int(fields.get(b"id", b"0")), fields[b"event"].decode(), fields[b"data"])
