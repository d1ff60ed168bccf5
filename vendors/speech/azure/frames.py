"""Encodes and parses the messages of vendor A's WebSockets: header lines and a body. Does no I/O."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from vendors.json_events import number_of

TICKS_PER_MS = 10_000
"""The vendor counts times in units of 100 ns."""

MAX_HEADER_BYTES = 8192
_MAX_TICKS = 1 << 53
_LENGTH_BYTES = 2


@dataclass(frozen=True, slots=True)
class Frame:
    """One message. `path` is its type; it and the names of `headers` are in lower case."""

    path: str
    request_id: str
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    is_binary: bool = False


def text_frame(headers: Mapping[str, str], body: str) -> str:
    return f"{_lines(headers)}\r\n{body}"


def binary_frame(headers: Mapping[str, str], body: bytes) -> bytes:
    head = _lines(headers).encode("ascii")
    return len(head).to_bytes(_LENGTH_BYTES, "big") + head + body


def read_frame(message: str | bytes) -> Frame:
    """Parse a message. Raise `ValueError` if it is malformed."""
    if isinstance(message, str):
        head, _, text = message.partition("\r\n\r\n")
        return _frame(head, text.encode(), is_binary=False)
    size = int.from_bytes(message[:_LENGTH_BYTES], "big")
    begin = _LENGTH_BYTES + size
    if len(message) < max(begin, _LENGTH_BYTES) or size > MAX_HEADER_BYTES:
        raise ValueError("the message is shorter than its header")
    return _frame(message[_LENGTH_BYTES:begin].decode("ascii"), message[begin:], is_binary=True)


def ticks_of(value: Mapping[str, Any], name: str) -> int:
    """Return a time from a JSON message: a number or a numeric string, or 0 if there is none."""
    ticks = number_of(value.get(name))
    return int(ticks) if ticks is not None and 0 <= ticks < _MAX_TICKS else 0


def _lines(headers: Mapping[str, str]) -> str:
    return "".join(f"{name}:{value}\r\n" for name, value in headers.items())


def _frame(head: str, body: bytes, *, is_binary: bool) -> Frame:
    headers: dict[str, str] = {}
    for line in head.split("\r\n"):
        name, colon, value = line.partition(":")
        if colon:
            headers[name.strip().lower()] = value.strip()
        elif line:
            raise ValueError("a header line has no colon")
    if "path" not in headers:
        raise ValueError("the header has no path")
    return Frame(headers["path"].lower(), headers.get("x-requestid", ""), body, headers, is_binary)
