"""What came of an event stream, from the bytes of its HTTP body. Pure: bytes in, figures and faults out.

A `Tally` counts for next to nothing. A `Reading` reads every event in full: a sample of streams has both.
"""

import re
from base64 import b64decode
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from streams.wire.codec import loads

_ID = b"\nid: "
_LAST_EVENT = b"\nevent: e"
"""No name but `end` and `error` begins with that letter."""
_LAST = re.compile(rb"\nid: (\d+)\nevent: (end|error)\ndata: ([^\r\n]*)")
_LAST_CHUNK = b"\r\n0\r\n\r\n"
_TAIL_BYTES = 64
"""More than stands between the end of one line and the name of an event."""
SAID = {
    "assistant_output_chunk": "text",
    "assistant_output_audio_chunk": "audio",
    "audio_chunk": "audio",
}
"""Events that the digest covers: by name, the field of their content that holds what was said."""


class Tally:
    """Counts the events of a chunked body, and finds its first output and its last event.

    JSON holds no line break: what looks like the line of an id is one. A proxy that cuts the server's chunks anew
    may cut through such a line, which is then missed and told as a fault.
    """

    __slots__ = ("_final", "_marker", "_tail", "begun", "events")

    def __init__(self, marker: bytes) -> None:
        """`marker`: the name of the event that counts as the first output."""
        self.events = 0
        self.begun = False
        """The first output is there."""
        self._marker = b"\nevent: %b\n" % marker
        self._tail = b"\n"
        self._final: bytes | None = None

    def feed(self, data: bytes) -> int:
        """How many events begin in `data`."""
        tail = self._tail
        window = tail + data
        more = window.count(_ID, max(0, len(tail) - len(_ID) + 1))
        self.events += more
        if not self.begun and self._marker in window:
            self.begun = True
        if self._final is not None:
            self._final += data
        elif (at := window.find(_LAST_EVENT)) >= 0:
            self._final = window[max(0, at - _TAIL_BYTES) :]
        self._tail = window[-_TAIL_BYTES:]
        return more

    @property
    def over(self) -> bool:
        """The last chunk is there."""
        return self._tail.endswith(_LAST_CHUNK)

    def outcome(self) -> tuple[str, str]:
        """How the stream ended (`end`, or `error` and its type), and what is wrong with it."""
        last = _LAST.search(self._final or b"")
        if last is None:
            return "", "it has no last event"
        if int(last[1]) != self.events:
            return "", f"{self.events} events came, and the last has number {int(last[1])}"
        return outcome_of(last[2].decode(), last[3]), ""


def outcome_of(name: str, data: bytes) -> str:
    """`end`, or `error` and its type."""
    return name if name == "end" else f"error {loads(data)['content']['error']['error_type']}"


@dataclass(frozen=True, slots=True)
class Event:
    """`id` is 0 where it has none."""

    id: int
    name: str
    data: bytes


class Chunks:
    """The content of a chunked HTTP body."""

    __slots__ = ("_raw", "over")

    def __init__(self) -> None:
        self.over = False
        self._raw = bytearray()

    def feed(self, data: bytes) -> bytes:
        """What of the content is whole now; `ValueError` where it is no such body."""
        raw, content = self._raw, b""
        raw += data
        while not self.over and (line := raw.find(b"\r\n")) >= 0:
            size = int(raw[:line], 16)
            end = line + 2 + size
            if len(raw) < end + 2:
                break
            content += raw[line + 2 : end]
            self.over = size == 0
            del raw[: end + 2]
        return content


class Reading:
    """Reads a stream in full: ids without a gap, one last event and nothing behind it, the digest."""

    __slots__ = ("_chars", "_chunks", "_last_id", "_needs_digest", "_partial", "_sha", "fault", "outcome", "spoken")

    def __init__(self, *, needs_digest: bool = True) -> None:
        self.outcome = ""
        self.fault = ""
        """The first that was found."""
        self.spoken: list[str] = []
        """Texts of the chunks that the latest bytes completed."""
        self._needs_digest = needs_digest
        self._chunks = Chunks()
        self._partial = b""
        self._last_id = 0
        self._chars = 0
        self._sha = sha256()

    def feed(self, data: bytes) -> list[Event]:
        """The events that `data` completes."""
        self.spoken = []
        try:
            *frames, self._partial = (self._partial + self._chunks.feed(data)).split(b"\n\n")
            events = [event_of(frame) for frame in frames]
            for event in events:
                self._take(event)
        except (ValueError, KeyError, TypeError) as error:
            self._wrong(f"it cannot be read: {error!r}")
            return []
        return events

    def end(self) -> None:
        """The body is over."""
        if not self.outcome:
            self._wrong("it has no last event")
        if self._partial:
            self._wrong(f"it ends in the middle of an event: {self._partial[:80]!r}")

    def _take(self, event: Event) -> None:
        if event.name == "ping" and not event.id:
            return
        if self.outcome:
            self._wrong(f"{event.name} comes behind the last event")
        if event.id != self._last_id + 1:
            self._wrong(f"{event.id} follows {self._last_id}")
        self._last_id = event.id
        if (field := SAID.get(event.name)) is not None:
            self._say(loads(event.data)["content"][field], is_text=field == "text")
        elif event.name in {"end", "error"}:
            self.outcome = outcome_of(event.name, event.data)
            if event.name == "end" and self._needs_digest:
                self._check_digest(loads(event.data)["content"]["digest"])

    def _say(self, said: str, *, is_text: bool) -> None:
        if is_text:
            self.spoken.append(said)
            self._chars += len(said)
        self._sha.update(said.encode() if is_text else b64decode(said, validate=True))

    def _check_digest(self, told: dict[str, Any]) -> None:
        digest = {"chars": self._chars, "sha256": self._sha.hexdigest()}
        if told != digest:
            self._wrong(f"the digest is {told}, and what came has {digest}")

    def _wrong(self, fault: str) -> None:
        self.fault = self.fault or fault


def event_of(frame: bytes) -> Event:
    """Parse one frame, without the blank line at its end; `ValueError` or `KeyError` where it is none."""
    fields = dict(line.split(b": ", 1) for line in frame.split(b"\n"))
    return Event(int(fields.get(b"id", b"0")), fields[b"event"].decode(), fields[b"data"])
