"""Server-Sent Events from bytes, however these are cut.

https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation
"""

import re
from dataclasses import dataclass

from parley_client.errors import NotUnderstood

_LINE_END = re.compile(rb"\r\n|\n|\r")
_BOM = b"\xef\xbb\xbf"
_LINE_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class SseEvent:
    id: str | None
    """The id that this event has itself; the standard would repeat that of an earlier event."""
    name: str
    data: str


class SseParser:
    def __init__(self) -> None:
        self._rest = b""
        self._after_cr = False
        self._first_line = True
        self._id: str | None = None
        self._name = ""
        self._data: list[str] = []

    def feed(self, data: bytes) -> list[SseEvent]:
        """Return the events that `data` completes."""
        if self._after_cr and data:
            data = data.removeprefix(b"\n")  # of a line end that was cut in two
            self._after_cr = False
        if not data:
            return []
        self._after_cr = data.endswith(b"\r")
        *lines, self._rest = _LINE_END.split(self._rest + data)
        if len(self._rest) > _LINE_BYTES:
            raise NotUnderstood("a line of the event stream is too long")
        return [event for line in lines if (event := self._line(line)) is not None]

    def _line(self, line: bytes) -> SseEvent | None:
        if self._first_line:
            line = line.removeprefix(_BOM)
            self._first_line = False
        if not line:
            return self._dispatch()
        field, _, value = line.decode(errors="replace").partition(":")
        value = value.removeprefix(" ")
        match field:
            case "event":
                self._name = value
            case "data":
                self._data.append(value)
            case "id" if "\0" not in value:
                self._id = value
        return None

    def _dispatch(self) -> SseEvent | None:
        event = SseEvent(self._id, self._name or "message", "\n".join(self._data)) if self._data else None
        self._id, self._name, self._data = None, "", []
        return event
