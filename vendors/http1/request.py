"""A request of HTTP as bytes, and where it is sent."""

from base64 import b64encode
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from yarl import URL

from vendors.http1.errors import BadAddress, BadHeader

_PORTS = {"http": 80, "https": 443}
_BODILESS = frozenset({"GET", "DELETE", "OPTIONS"})


class Origin(NamedTuple):
    """What connections are kept for."""

    tls: bool
    host: str
    port: int


class Address(NamedTuple):
    origin: Origin
    target: str
    """Path and query as they are sent."""
    defaults: tuple[tuple[str, str, str], ...]
    """Headers that are sent unless the call has its own: name in lower case, name, value."""


@lru_cache(maxsize=1024)
def address_of(url: str) -> Address:
    """`BadAddress` where it is none."""
    try:
        parts = URL(url)
        port = parts.port or _PORTS[parts.scheme]
        host = parts.host
        authority = parts.host_port_subcomponent
    except (ValueError, KeyError):
        raise BadAddress("no URL of HTTP") from None
    if not host or not authority:
        raise BadAddress("a URL without a host")
    defaults = [
        ("host", "Host", authority),
        ("accept", "Accept", "*/*"),
        ("accept-encoding", "Accept-Encoding", "identity"),  # a compressed delta comes late, and costs more
        ("user-agent", "User-Agent", "Parley"),
    ]
    if parts.user is not None:
        key = b64encode(f"{parts.user}:{parts.password or ''}".encode()).decode()
        defaults.append(("authorization", "Authorization", f"Basic {key}"))
    origin = Origin(parts.scheme == "https", host.rstrip("."), port)
    return Address(origin, parts.raw_path_qs or "/", tuple(defaults))


def head_of(
    method: str, url: str, headers: Mapping[str, str], *, body_bytes: int | None, request_id: str = ""
) -> bytes:
    """The head of a request. `body_bytes`: of a body that is not known yet, none: it is sent in chunks.

    `BadAddress`; `BadHeader` where one holds what HTTP cannot send.
    """
    head = _beginning(method, url, tuple(headers.items()))
    if request_id:
        head += _line("X-Request-Id", request_id)
    if body_bytes is None:
        return head + b"Transfer-Encoding: chunked\r\n\r\n"
    if body_bytes or method not in _BODILESS:
        return b"%bContent-Length: %d\r\n\r\n" % (head, body_bytes)
    return head + b"\r\n"


@lru_cache(maxsize=256)
def _beginning(method: str, url: str, headers: tuple[tuple[str, str], ...]) -> bytes:
    """What is the same for every call of one strategy."""
    address = address_of(url)
    own = {name.lower() for name, _ in headers}
    defaults = [(name, value) for key, name, value in address.defaults if key not in own]
    lines = [_line(name, value) for name, value in (*defaults, *headers)]
    return b"".join((f"{method} {address.target} HTTP/1.1\r\n".encode(), *lines))


def _line(name: str, value: str) -> bytes:
    line = f"{name}: {value}"
    if "\r" in line or "\n" in line or "\0" in line:
        raise BadHeader("it holds the end of a line")
    try:
        return line.encode() + b"\r\n"
    except UnicodeEncodeError:
        raise BadHeader("it holds half of a character") from None
