"""Looks vendors' names up at DNS servers of the operator's choice, in place of those of the system."""

import asyncio
import secrets
import socket
import struct
from collections.abc import Iterator, Sequence
from contextlib import suppress

from aiohttp import ThreadedResolver
from aiohttp.abc import AbstractResolver, ResolveResult

_HEADER = struct.Struct("!6H")
_RECORD = struct.Struct("!HHIH")
_RECURSIVE = 0x0100
_IS_ANSWER = 0x8000
_RCODE = 0x000F
_NO_FAULT, _NO_SUCH_NAME = 0, 3
_INTERNET = 1
_TYPES = {socket.AF_INET: 1, socket.AF_INET6: 28}
_SIZES = {socket.AF_INET: 4, socket.AF_INET6: 16}
_LONGEST = 253
_SECOND_WAIT_S = 0.05
"""How long the other family may be later than one that has addresses."""


class NameNotFound(socket.gaierror):
    """No server knows an address for the name, or none answered."""


class _NextServer(Exception):
    """This one did not help."""


class DnsResolver(AbstractResolver):
    """Asks each server in turn over UDP, all of them twice. A name without a dot is the system's to know."""

    def __init__(self, servers: Sequence[tuple[str, int]], *, wait_s: float = 1, rounds: int = 2) -> None:
        self._servers = [*servers] * rounds
        self._wait_s = wait_s
        self._system = ThreadedResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """All addresses of `host`, of both families where none is named; `NameNotFound`."""
        name = host.rstrip(".")
        if "." not in name:
            return await self._system.resolve(host, port, family)
        families = [family] if family in _TYPES else list(_TYPES)
        asked = _encoded(name)
        for server in self._servers:
            with suppress(_NextServer, OSError):
                addresses = await self._ask(server, asked, families)
                break
        else:
            raise NameNotFound(f"no DNS server answered for {host}")
        if not addresses:
            raise NameNotFound(f"{host} has no address")
        return [
            ResolveResult(
                hostname=host, host=address, port=port, family=found, proto=0, flags=socket.AI_NUMERICHOST
            )
            for found, address in addresses
        ]

    async def close(self) -> None:
        await self._system.close()

    async def _ask(
        self, server: tuple[str, int], name: bytes, families: Sequence[socket.AddressFamily]
    ) -> list[tuple[socket.AddressFamily, str]]:
        loop = asyncio.get_running_loop()
        questions = [_Question(name, family, loop.create_future()) for family in families]
        transport, _ = await loop.create_datagram_endpoint(lambda: _Asking(questions), remote_addr=server)
        try:
            for question in questions:
                transport.sendto(question.message)
            await _answered(questions, self._wait_s)
        finally:
            transport.close()
        told = [(question.family, question.told) for question in questions if question.told is not None]
        if not told:
            raise _NextServer
        return [(family, address) for family, addresses in told for address in addresses]


class _Question:
    """One name, as DNS writes it, and one family. Its number is one that nobody elsewhere can guess."""

    def __init__(self, name: bytes, family: socket.AddressFamily, over: asyncio.Future[None]) -> None:
        self.family = family
        self.over = over
        self.told: list[str] | None = None
        """Addresses, once a server has told that these are all."""
        self.number = secrets.randbelow(1 << 16)
        self._asked = name + struct.pack("!2H", _TYPES[family], _INTERNET)

    @property
    def message(self) -> bytes:
        return _HEADER.pack(self.number, _RECURSIVE, 1, 0, 0, 0) + self._asked

    def take(self, message: bytes) -> None:
        """Read an answer if it is one to this. One that is refused is over without addresses."""
        number, flags, questions, records, *_ = _HEADER.unpack_from(message)
        end = _HEADER.size + len(self._asked)
        if number != self.number or not flags & _IS_ANSWER or questions != 1:
            return
        if message[_HEADER.size : end].lower() != self._asked.lower():
            return
        if flags & _RCODE in {_NO_FAULT, _NO_SUCH_NAME}:
            self.told = list(_addresses(message, end, records, self.family))
        self.end()

    def end(self) -> None:
        if not self.over.done():
            self.over.set_result(None)


class _Asking(asyncio.DatagramProtocol):
    def __init__(self, questions: Sequence[_Question]) -> None:
        self._questions = questions

    def datagram_received(self, data: bytes, addr: tuple[str | object, int]) -> None:
        for question in self._questions:
            with suppress(struct.error, IndexError, ValueError):
                question.take(data)

    def error_received(self, exc: Exception) -> None:
        """Nobody listens there."""
        for question in self._questions:
            question.end()


async def _answered(questions: Sequence[_Question], wait_s: float) -> None:
    """Wait until all are over, or one with addresses has waited for the other long enough."""
    waits = {question.over for question in questions}
    _, late = await asyncio.wait(waits, timeout=wait_s, return_when=asyncio.FIRST_COMPLETED)
    if late and late != waits:
        found = any(question.told for question in questions)
        await asyncio.wait(late, timeout=_SECOND_WAIT_S if found else wait_s)


def _encoded(name: str) -> bytes:
    labels = [label.encode() for label in name.split(".")]
    if not name.isascii() or len(name) > _LONGEST or not all(0 < len(label) < 64 for label in labels):
        raise NameNotFound(f"{name[:64]} is no name")
    return b"".join(bytes([len(label)]) + label for label in labels) + b"\0"


def _addresses(message: bytes, at: int, records: int, family: socket.AddressFamily) -> Iterator[str]:
    """Those of `family` in the answer section, whichever name they stand behind: aliases were followed for us."""
    for _ in range(records):
        at = _behind_name(message, at)
        kind, group, _, size = _RECORD.unpack_from(message, at)
        at += _RECORD.size
        if (kind, group, size) == (_TYPES[family], _INTERNET, _SIZES[family]):
            yield socket.inet_ntop(family, message[at : at + size])
        at += size


def _behind_name(message: bytes, at: int) -> int:
    while (size := message[at]) != 0:
        if size >= 0xC0:  # the rest stands elsewhere in the message
            return at + 2
        at += 1 + size
    return at + 1
