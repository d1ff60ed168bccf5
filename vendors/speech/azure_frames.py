"""The messages of vendor A's sockets: header lines and a body, in a text or a binary message. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

TICKS_PER_MS = 10_000
"""Times are counted in units of 100 ns."""

MAX_HEADER_BYTES = 8192
_LENGTH_BYTES = 2


@dataclass(frozen=True, slots=True)
class Frame:
    """One message. `path` says what it is; it and the names of `headers` are in lower case."""

    path: str
    request_id: str
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


def text_frame(headers: Mapping[str, str], body: str) -> str:
    return f"{_lines(headers)}\r\n{body}"


def binary_frame(headers: Mapping[str, str], body: bytes) -> bytes:
    head = _lines(headers).encode("ascii")
    return len(head).to_bytes(_LENGTH_BYTES, "big") + head + body


def read_frame(message: str | bytes) -> Frame:
    """The frame of a message; `ValueError` where it is none."""
    if isinstance(message, str):
        head, _, text = message.partition("\r\n\r\n")
        return _frame(head, text.encode())
    size = int.from_bytes(message[:_LENGTH_BYTES], "big")
    begin = _LENGTH_BYTES + size
    if len(message) < max(begin, _LENGTH_BYTES) or size > MAX_HEADER_BYTES:
        raise ValueError("it is shorter than its header")
    return _frame(message[_LENGTH_BYTES:begin].decode("ascii"), message[begin:])


def ticks_of(value: Mapping[str, Any], name: str) -> int:
    """A time in a message's JSON: a number, at times in a string, 0 where it is missing; else `ValueError`."""
    return int(value.get(name) or 0)


def _lines(headers: Mapping[str, str]) -> str:
    return "".join(f"{name}:{value}\r\n" for name, value in headers.items())


def _frame(head: str, body: bytes) -> Frame:
    headers: dict[str, str] = {}
    for line in head.split("\r\n"):
        name, colon, value = line.partition(":")
        if colon:
            headers[name.strip().lower()] = value.strip()
        elif line:
            raise ValueError("it has a header line without a colon")
    if "path" not in headers:
        raise ValueError("it has no path")
    return Frame(headers["path"].lower(), headers.get("x-requestid", ""), body, headers)
