"""Encodes the head of an HTTP request and parses its URL."""

from base64 import b64encode
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from yarl import URL

from vendors.http.http1.errors import BadAddress, BadHeader

_PORTS = {"http": 80, "https": 443}
_METHODS_WITHOUT_BODY = frozenset({"GET", "DELETE", "OPTIONS"})


class Origin(NamedTuple):
    """The key under which idle connections are pooled."""

    tls: bool
    host: str
    port: int


class Address(NamedTuple):
    origin: Origin
    target: str
    """The request target: path and query."""
    defaults: tuple[tuple[str, str, str], ...]
    """Headers sent unless the call sets them: name in lower case, name, value."""


@lru_cache(maxsize=1024)
def parse_url(url: str) -> Address:
    """Parse a URL. Raise `BadAddress` if it is not an HTTP URL with a host."""
    try:
        parts = URL(url)
        port = parts.port or _PORTS[parts.scheme]
        host = parts.host
        authority = parts.host_port_subcomponent
    except (ValueError, KeyError):
        raise BadAddress("not an HTTP URL") from None
    if not host or not authority:
        raise BadAddress("the URL has no host")
    defaults = [
        ("host", "Host", authority),
        ("accept", "Accept", "*/*"),
        ("accept-encoding", "Accept-Encoding", "identity"),  # Compression delays deltas and costs CPU.
        ("user-agent", "User-Agent", "Parley"),
    ]
    if parts.user is not None:
        key = b64encode(f"{parts.user}:{parts.password or ''}".encode()).decode()
        defaults.append(("authorization", "Authorization", f"Basic {key}"))
    origin = Origin(parts.scheme == "https", host.rstrip("."), port)
    return Address(origin, parts.raw_path_qs or "/", tuple(defaults))


def encode_head(
    method: str, url: str, headers: Mapping[str, str], *, body_bytes: int | None, request_id: str = ""
) -> bytes:
    """Encode the head of a request. `body_bytes` is the length of the body, or `None` for a chunked body.

    Raise `BadAddress` for an invalid URL and `BadHeader` for an invalid header.
    """
    head = _static_part(method, url, tuple(headers.items()))
    if request_id:
        head += _line("X-Request-Id", request_id)
    if body_bytes is None:
        return head + b"Transfer-Encoding: chunked\r\n\r\n"
    if body_bytes or method not in _METHODS_WITHOUT_BODY:
        return b"%bContent-Length: %d\r\n\r\n" % (head, body_bytes)
    return head + b"\r\n"


@lru_cache(maxsize=256)
def _static_part(method: str, url: str, headers: tuple[tuple[str, str], ...]) -> bytes:
    """Encode the part of the head that is the same for all calls of one strategy, which is cached."""
    address = parse_url(url)
    given = {name.lower() for name, _ in headers}
    defaults = [(name, value) for key, name, value in address.defaults if key not in given]
    lines = [_line(name, value) for name, value in (*defaults, *headers)]
    return b"".join((f"{method} {address.target} HTTP/1.1\r\n".encode(), *lines))


def _line(name: str, value: str) -> bytes:
    line = f"{name}: {value}"
    if "\r" in line or "\n" in line or "\0" in line:
        raise BadHeader("a header contains a line break or NUL")
    try:
        return line.encode() + b"\r\n"
    except UnicodeEncodeError:
        raise BadHeader("a header contains an unpaired surrogate") from None
