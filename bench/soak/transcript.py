"""The transcript of one stream, joined from all its responses. This module does no I/O."""

from base64 import b64decode
from hashlib import sha256
from typing import Any

from bench.stream_outcome import DIGESTED_FIELDS, Event, event_of, outcome_of
from streams.wire.codec import loads

_TERMINALS = frozenset({"end", "error"})


class Transcript:
    """Joins the responses of one stream, and checks its ids, its terminal event and its digest.

    A response may repeat earlier events, which must then be identical.
    """

    __slots__ = (
        "_chars",
        "_digest",
        "_frames",
        "_partial",
        "_position",
        "faults",
        "outcome",
        "receipt",
        "unnumbered",
        "written",
    )

    def __init__(self) -> None:
        self.outcome = ""
        """`end`, or `error` followed by the error type; empty before the terminal event."""
        self.receipt: dict[str, Any] = {}
        """The content of the terminal event."""
        self.unnumbered = False
        """Whether the terminal event has no id. A server sends such an event if the stream's process has died."""
        self.written: list[str] = []
        """The texts of the answer since its last restart, which its record must contain."""
        self.faults: list[str] = []
        self._frames: list[int] = []
        """The hashes of all events, ordered by id."""
        self._position = 0
        self._partial = b""
        self._digest = sha256()
        self._chars = 0

    @property
    def last_id(self) -> int:
        """The id of the last received event, which is the value for `Last-Event-ID`."""
        return len(self._frames)

    @property
    def complete(self) -> bool:
        """Whether the terminal event has arrived."""
        return bool(self.outcome)

    def begin(self, *, after: int = 0) -> None:
        """Begin a response that was requested for the events after id `after`. Discard an incomplete event."""
        self._position = after
        self._partial = b""

    def feed(self, content: bytes) -> int:
        """Process the next bytes of a response body, and return the number of events that they complete."""
        *frames, self._partial = (self._partial + content).split(b"\n\n")
        for frame in frames:
            try:
                self._handle(event_of(frame), frame)
            except (ValueError, KeyError, TypeError) as error:
                self.faults.append(f"an event cannot be parsed: {error!r}")
        return len(frames)

    def _handle(self, event: Event, frame: bytes) -> None:
        if not event.id:
            if event.name in _TERMINALS:
                self.unnumbered = True
                self._end(event)
            return
        if event.id != self._position + 1:
            self.faults.append(f"gap: event {event.id} follows {self._position}")
        self._position = event.id
        if event.id <= self.last_id:
            if self._frames[event.id - 1] != hash(frame):
                self.faults.append(f"event {event.id} differs when it is sent again")
            return
        if self.complete and event.name not in _TERMINALS:
            self.faults.append(f"{event.name} follows the terminal event")
        self._frames.append(hash(frame))
        if event.name in _TERMINALS:
            self._end(event)
        elif event.name in DIGESTED_FIELDS or event.name == "assistant_output_restart":
            self._add_output(event.name, loads(event.data)["content"])

    def _add_output(self, name: str, content: dict[str, Any]) -> None:
        if name == "assistant_output_restart":
            self.written = []
            return
        output = content[DIGESTED_FIELDS[name]]
        if DIGESTED_FIELDS[name] == "text":
            self.written.append(output)
            self._chars += len(output)
            self._digest.update(output.encode())
        else:
            self._digest.update(b64decode(output, validate=True))

    def _end(self, event: Event) -> None:
        if self.complete:
            self.faults.append(f"a second terminal event: {event.name} after {self.outcome}")
            return
        self.outcome = outcome_of(event.name, event.data)
        content = loads(event.data)["content"]
        if event.name == "error":
            self.receipt = content["error"]
            return
        self.receipt = content
        received = {"chars": self._chars, "sha256": self._digest.hexdigest()}
        if content["digest"] != received:
            self.faults.append(f"the digest of `end` is {content['digest']}, of what was received {received}")
