"""What one stream sent, read over as many responses as it took. Pure: bytes in, the outcome and faults out."""

from base64 import b64decode
from hashlib import sha256
from typing import Any

from bench.tally import DIGESTED_FIELDS, Event, event_of, outcome_of
from streams.wire.codec import loads

_TERMINALS = frozenset({"end", "error"})


class Transcript:
    """Joins the responses of one stream and checks the whole: ids without a gap, one terminal event, the digest.

    A response may begin anew with events that came before; those must be the same ones.
    """

    __slots__ = (
        "_chars",
        "_frames",
        "_partial",
        "_position",
        "_said",
        "faults",
        "outcome",
        "receipt",
        "unnumbered",
        "written",
    )

    def __init__(self) -> None:
        self.outcome = ""
        """`end`, or `error` and its type, once the terminal event is there."""
        self.receipt: dict[str, Any] = {}
        """The content of the terminal event."""
        self.unnumbered = False
        """Whether the terminal event had no id: what a server sends in place of a stream whose process is gone."""
        self.written: list[str] = []
        """Texts of the answer since its last restart: what its record must hold."""
        self.faults: list[str] = []
        self._frames: list[int] = []
        """Of each event its hash, in the order of ids."""
        self._position = 0
        self._partial = b""
        self._said = sha256()
        self._chars = 0

    @property
    def last_id(self) -> int:
        """Of the events that have come; what `Last-Event-ID` names."""
        return len(self._frames)

    @property
    def over(self) -> bool:
        """Whether the terminal event is there."""
        return bool(self.outcome)

    def begin(self, *, after: int = 0) -> None:
        """A response begins, for the events after that id. Half an event of the one before is void."""
        self._position = after
        self._partial = b""

    def feed(self, content: bytes) -> int:
        """Take bytes of a response's content; how many events they complete."""
        *frames, self._partial = (self._partial + content).split(b"\n\n")
        for frame in frames:
            try:
                self._take(event_of(frame), frame)
            except (ValueError, KeyError, TypeError) as error:
                self.faults.append(f"an event cannot be read: {error!r}")
        return len(frames)

    def _take(self, event: Event, frame: bytes) -> None:
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
                self.faults.append(f"event {event.id} is another one when it is sent again")
            return
        if self.over and event.name not in _TERMINALS:
            self.faults.append(f"{event.name} follows the terminal event")
        self._frames.append(hash(frame))
        if event.name in _TERMINALS:
            self._end(event)
        elif event.name in DIGESTED_FIELDS or event.name == "assistant_output_restart":
            self._say(event.name, loads(event.data)["content"])

    def _say(self, name: str, content: dict[str, Any]) -> None:
        if name == "assistant_output_restart":
            self.written = []
            return
        said = content[DIGESTED_FIELDS[name]]
        if DIGESTED_FIELDS[name] == "text":
            self.written.append(said)
            self._chars += len(said)
            self._said.update(said.encode())
        else:
            self._said.update(b64decode(said, validate=True))

    def _end(self, event: Event) -> None:
        if self.over:
            self.faults.append(f"a second terminal event: {event.name} after {self.outcome}")
            return
        self.outcome = outcome_of(event.name, event.data)
        content = loads(event.data)["content"]
        if event.name == "error":
            self.receipt = content["error"]
            return
        self.receipt = content
        received = {"chars": self._chars, "sha256": self._said.hexdigest()}
        if content["digest"] != received:
            self.faults.append(f"the digest of `end` is {content['digest']}, of what was received {received}")
