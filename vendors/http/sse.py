"""An incremental parser of a vendor's Server-Sent Events. Does no I/O; the split of the input does not matter."""

from typing import NamedTuple

from streams.wire.damaged import loads_damaged
from vendors.json_events import ErrorData

LIMIT_BYTES = 4 * 1024 * 1024
END_OF_EVENT = b"\n\n"
"""Ends an event whose last lines are missing. The standard drops it, but some vendors end their streams with it."""
_DATA = b"data: "
_CR, _LF = b"\r\n"
_BOM = b"\xef\xbb\xbf"
_STARTS = (b"data:", b"event:", b"id:", b"retry:", b":")
_MAX_START_BYTES = 4096


class ServerEvent(NamedTuple):
    """One event. `name` is empty if the event has no `event` field."""

    name: str
    data: bytes


def is_event_stream(start: bytes) -> bool | None:
    """Return whether a body that begins with `start` is an event stream, or None if that is not known yet."""
    if start and len(start) < len(_BOM) and _BOM.startswith(start):
        return None
    text = start.removeprefix(_BOM).lstrip()
    if text.startswith(_STARTS):
        return True
    may_become_one = any(each.startswith(text) for each in _STARTS) and len(start) < _MAX_START_BYTES
    return None if may_become_one else False


class SseLines:
    """Splits an event stream into lines, which end with CR, LF or CRLF. Ignores a byte order mark before them."""

    __slots__ = ("_after_cr", "started", "tail")

    def __init__(self) -> None:
        self.tail = b""
        """The bytes after the last complete line."""
        self.started = False
        """Whether there can be no byte order mark any more."""
        self._after_cr = False

    @property
    def at_line_end(self) -> bool:
        """Whether the input so far ends at the end of a line. After a CR, this is not known."""
        return not (self.tail or self._after_cr)

    def feed(self, piece: bytes) -> list[bytes]:
        """Return the lines that `piece` completes, without their ends."""
        if self._after_cr and piece:
            piece = piece.removeprefix(b"\n")
            self._after_cr = False
        text = self.tail + piece
        if not self.started:
            if len(text) < len(_BOM) and _BOM.startswith(text):
                self.tail = text
                return []
            self.started = True
            text = text.removeprefix(_BOM)
        if b"\r" in text:
            self._after_cr = text.endswith(b"\r")
            text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *lines, self.tail = text.split(b"\n")
        return lines


def is_whole(line: bytes) -> bool:
    """Return whether no JSON value begins in a line of data and goes on in the next one."""
    if not line.lstrip().startswith((b"{", b"[")):
        return True
    try:
        loads_damaged(line)
    except ValueError:
        return False
    return True


class SseParser:
    """Parses the event stream format of the HTML standard, §9.2.6. Ignores comments, `id` and `retry`.

    `splits_lines`: all data is JSON, and a first line of data that is whole is an event of its own if another one
    follows, because some servers separate events with one line feed.
    """

    __slots__ = ("_at_event_end", "_data", "_first_name", "_lines", "_name", "_size", "_splits_lines")

    def __init__(self, *, splits_lines: bool = False) -> None:
        self._splits_lines = splits_lines
        self._lines = SseLines()
        self._name = ""
        self._first_name = ""
        """The name at the first line of data."""
        self._data: list[bytes] = []
        self._size = 0
        self._at_event_end = True
        """Whether the input so far ends at the end of an event."""

    def payloads(self, piece: bytes) -> list[bytes]:
        """Like `feed`, but return only the data of each event. That of an event named `error` is `ErrorData`."""
        if self._at_event_end and piece[-2:] == b"\n\n" and _CR not in piece and len(piece) <= LIMIT_BYTES:
            payloads = []
            for block in piece[:-2].split(b"\n\n"):
                if block[:6] != _DATA or _LF in block:
                    break
                payloads.append(block[6:])
            else:
                self._lines.started = True
                return payloads  # The usual read: complete events of one line each.
        return [ErrorData(data) if name == "error" else data for name, data in self.feed(piece)]

    def feed(self, piece: bytes) -> list[ServerEvent]:
        """Return the events that `piece` completes. Raise `ValueError` if an event is larger than `LIMIT_BYTES`."""
        events: list[ServerEvent] = []
        for line in self._lines.feed(piece):
            if not line:
                if self._data:
                    events.append(ServerEvent(self._name, b"\n".join(self._data)))
                self._name, self._data, self._size = "", [], 0
            elif (event := self._field(line)) is not None:
                events.append(event)
        self._check_size(len(self._lines.tail))
        self._at_event_end = self._lines.at_line_end and not (self._data or self._name)
        return events

    def _field(self, line: bytes) -> ServerEvent | None:
        """Read a field. Return the event before it if it begins another one without a blank line."""
        event = None
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            if not self._data:
                self._first_name = self._name
            elif self._splits_lines and len(self._data) == 1 and is_whole(self._data[0]):
                event = ServerEvent(self._first_name, self._data.pop())
                self._first_name, self._size = self._name, 0
            self._data.append(value)
            self._size += len(line) + 1
            self._check_size(0)
        elif field == b"event":
            self._name = value.decode("utf-8", "replace")
        return event

    def _check_size(self, more: int) -> None:
        if self._size + more > LIMIT_BYTES:
            raise ValueError("an event is too large")
