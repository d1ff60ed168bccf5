"""A DNS server on this machine: knows the names that it is told, is silent about some, and denies all others."""

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
"""Types of records, and the version of the addresses that they hold."""
_ALIAS = 5
_TTL_S = 1


@dataclass
class Names:
    """What the server knows; a name in none of them does not exist. `asked`: names in the order of their coming."""

    known: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """By name its addresses; an alias first, if any, is a name."""
    silent: frozenset[str] = frozenset()
    failing: frozenset[str] = frozenset()
    asked: list[str] = field(default_factory=list)

    def answer(self, message: bytes) -> bytes | None:
        number, *_ = _HEADER.unpack_from(message)
        name, end = _name(message)
        (kind,) = struct.unpack_from("!H", message, end)
        question = message[_HEADER.size : end + 4]
        self.asked.append(name)
        if name in self.silent:
            return None
        records = [record for value in self.known.get(name, ()) if (record := _record(value, kind))]
        flags = _ANSWER
        if name in self.failing:
            flags |= _SERVER_FAILURE
        elif name not in self.known:
            flags |= _NO_SUCH_NAME
        return _HEADER.pack(number, flags, 1, len(records), 0, 0) + question + b"".join(records)


class _Listening(asyncio.DatagramProtocol):
    def __init__(self, names: Names) -> None:
        self._names = names

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, addr: tuple[str | object, int]) -> None:
        answer = self._names.answer(data)
        if answer is not None:
            self._transport.sendto(answer, addr)


@asynccontextmanager
async def naming(names: Names) -> AsyncIterator[tuple[str, int]]:
    """Serve `names` while the block lasts; where that is."""
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_datagram_endpoint(lambda: _Listening(names), local_addr=("127.0.0.1", 0))
    try:
        host, port = transport.get_extra_info("sockname")
        yield host, port
    finally:
        transport.close()


def _name(message: bytes) -> tuple[str, int]:
    """The name that is asked for, and where it ends."""
    labels: list[bytes] = []
    at = _HEADER.size
    while (size := message[at]) != 0:
        labels.append(message[at + 1 : at + 1 + size])
        at += 1 + size
    return b".".join(labels).decode().lower(), at + 1


def _record(value: str, kind: int) -> bytes:
    """`value` as a record of the name that was asked for; none where it is of the other family."""
    try:
        address = ip_address(value)
    except ValueError:
        alias = b"".join(bytes([len(label)]) + label.encode() for label in value.split(".")) + b"\0"
        return _written(_ALIAS, alias)
    return _written(kind, address.packed) if _TYPES.get(kind) == address.version else b""


def _written(kind: int, value: bytes) -> bytes:
    return struct.pack("!HHHIH", 0xC000 | _HEADER.size, kind, 1, _TTL_S, len(value)) + value
