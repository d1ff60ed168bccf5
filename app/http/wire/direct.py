"""Requests that are answered as soon as their bytes have arrived, without aiohttp's parser and the pipeline.

This is for a public endpoint that anybody calls very often and whose answer is always the same. Only a whole, plain
GET request without a body is answered so. Any other goes through the pipeline to the handler of the same row.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import unquote_plus

from aiohttp.helpers import rfc822_formatted_time

from app.services import Services
from streams.wire.ids import request_id

_MAX_BYTES = 8 * 1024
_END = b"\r\n\r\n"
_NAME = re.compile(r"[a-z0-9_-]{1,64}")
_UNUSUAL = frozenset({"content-length", "transfer-encoding", "expect", "upgrade", "origin", "content-encoding"})


@dataclass(frozen=True, slots=True)
class DirectRequest:
    query: Mapping[str, str]
    """A parameter that occurs more than once has its first value."""
    headers: Mapping[str, str]
    """By their names in lower case. The values of a repeated header are joined by commas."""
    peer: str
    """The address of the socket."""


@dataclass(frozen=True, slots=True)
class DirectAnswer:
    """What a row answers directly. `seen` is called with each request, and must not wait or fail."""

    path: str
    body: bytes
    headers: Mapping[str, str]
    seen: Callable[[Services, DirectRequest], None]


class DirectAnswers:
    """The direct answers of a server."""

    def __init__(self, answers: Mapping[str, DirectAnswer], services: Services) -> None:
        self._answers = answers
        self._services = services
        self._prefixes = tuple(f"GET {path}".encode() for path in answers)
        self._heads = {path: _head(answer) for path, answer in answers.items()}

    def may_answer(self, data: bytes) -> bool:
        """Return whether a read may be a whole request that is answered directly. This is cheap."""
        return data.startswith(self._prefixes) and len(data) <= _MAX_BYTES and data.find(_END) == len(data) - 4

    def path_of(self, data: bytes) -> str:
        """Return the path of a request that was answered."""
        return data[len("GET ") : data.index(b" ", len("GET "))].partition(b"?")[0].decode()

    def answer(self, data: bytes, *, peer: str) -> bytes | None:
        """Return the whole response to a request, or `None` if it is unusual. See `may_answer`."""
        line, *fields = data[:-4].decode("latin-1").split("\r\n")
        method, _, rest = line.partition(" ")
        target, _, version = rest.partition(" ")
        path, _, query = target.partition("?")
        direct, headers = self._answers.get(path), _headers(fields)
        if method != "GET" or version != "HTTP/1.1" or direct is None or headers is None or not line.isprintable():
            return None
        direct.seen(self._services, DirectRequest(_values(query), headers, peer))
        own = f"Date: {rfc822_formatted_time()}\r\nX-Request-Id: {request_id(headers.get('x-request-id'))}\r\n\r\n"
        return self._heads[path] + own.encode() + direct.body


def _values(query: str) -> dict[str, str]:
    """Return the parameters of a query. Their names are not encoded."""
    values: dict[str, str] = {}
    for part in query.split("&"):
        name, _, value = part.partition("=")
        values.setdefault(name, unquote_plus(value) if "%" in value or "+" in value else value)
    return values


def _headers(fields: list[str]) -> dict[str, str] | None:
    """Return the headers, or `None` if the pipeline has to deal with one of them."""
    headers: dict[str, str] = {}
    for field in fields:
        name, colon, value = field.partition(":")
        name, value = name.lower(), value.strip(" \t")
        if not colon or _NAME.fullmatch(name) is None or name in _UNUSUAL:
            return None
        if not value.isprintable() or (name == "connection" and value.lower() != "keep-alive"):
            return None
        headers[name] = f"{headers[name]},{value}" if name in headers else value
    return headers if "host" in headers else None


def _head(answer: DirectAnswer) -> bytes:
    headers = {**answer.headers, "Content-Length": str(len(answer.body)), "Server": "parley"}
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 200 OK\r\n{lines}".encode()
