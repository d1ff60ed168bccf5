"""A DNS server for tests: resolves given names, ignores queries for some, and denies that others exist."""

import asyncio
import struct
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import cast

_HEADER = struct.Struct("!6H")
_ANSWER, _NO_SUCH_NAME, _SERVER_FAILURE = 0x8180, 3, 2
_TYPES = {1: 4, 28: 6}
"""The IP version of each type of address record."""
_ALIAS, _TEXT = 5, 16
_MAX_STRING = 255
_TTL_S = 1


@dataclass
class Names:
    """The names of the server. Names that are not listed do not exist."""

    known: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The addresses of each name. The first value may be an alias, a name itself."""
    texts: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The TXT records of each name. Names above one of them exist, too."""
    silent: frozenset[str] = frozenset()
    """Names whose queries get no response."""
    failing: frozenset[str] = frozenset()
    """Names whose queries get a server failure."""
    asked: list[str] = field(default_factory=list)
    """The names of all queries, in order."""

    def answer(self, message: bytes) -> bytes | None:
        number, *_ = _HEADER.unpack_from(message)
        name, end = _name(message)
        (kind,) = struct.unpack_from("!H", message, end)
        question = message[_HEADER.size : end + 4]
        self.asked.append(name)
        if name in self.silent:
            return None
        if kind == _TEXT:
            records = [_encode_record(kind, _strings(text)) for text in self.texts.get(name, ())]
        else:
            records = [record for value in self.known.get(name, ()) if (record := _record(value, kind))]
        flags = _ANSWER
        if name in self.failing:
            flags |= _SERVER_FAILURE
        elif name not in self.known and not any(f".{each}".endswith(f".{name}") for each in self.texts):
            flags |= _NO_SUCH_NAME
        return _HEADER.pack(number, flags, 1, len(records), 0, 0) + question + b"".join(records)


class _Protocol(asyncio.DatagramProtocol):
    def __init__(self, names: Names) -> None:
        self._names = names

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, addr: tuple[str | object, int]) -> None:
        answer = self._names.answer(data)
        if answer is not None:
            self._transport.sendto(answer, addr)


@asynccontextmanager
async def dns_server(names: Names) -> AsyncIterator[tuple[str, int]]:
    """Serve `names` until the block ends. Yield the host and port of the server."""
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_datagram_endpoint(lambda: _Protocol(names), local_addr=("127.0.0.1", 0))
    try:
        host, port = transport.get_extra_info("sockname")
        yield host, port
    finally:
        transport.close()


def _name(message: bytes) -> tuple[str, int]:
    """Return the name in the query and the offset of its end."""
    labels: list[bytes] = []
    at = _HEADER.size
    while (size := message[at]) != 0:
        labels.append(message[at + 1 : at + 1 + size])
        at += 1 + size
    return b".".join(labels).decode().lower(), at + 1


def _record(value: str, kind: int) -> bytes:
    """Return `value` as a record of the queried name, or no bytes if it is an address of the other family."""
    try:
        address = ip_address(value)
    except ValueError:
        alias = b"".join(bytes([len(label)]) + label.encode() for label in value.split(".")) + b"\0"
        return _encode_record(_ALIAS, alias)
    return _encode_record(kind, address.packed) if _TYPES.get(kind) == address.version else b""


def _strings(text: str) -> bytes:
    """Return a text as the strings of a TXT record."""
    raw = text.encode()
    parts = [raw[at : at + _MAX_STRING] for at in range(0, len(raw), _MAX_STRING)]
    return b"".join(bytes([len(part)]) + part for part in parts)


def _encode_record(kind: int, value: bytes) -> bytes:
    return struct.pack("!HHHIH", 0xC000 | _HEADER.size, kind, 1, _TTL_S, len(value)) + value
