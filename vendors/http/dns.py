"""A resolver that queries the DNS servers chosen by the operator instead of those of the system."""

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
_IS_RESPONSE = 0x8000
_RCODE = 0x000F
_NO_ERROR, _NO_SUCH_NAME = 0, 3
_INTERNET = 1
_TYPES = {socket.AF_INET: 1, socket.AF_INET6: 28}
_SIZES = {socket.AF_INET: 4, socket.AF_INET6: 16}
_MAX_NAME_LENGTH = 253
_OTHER_FAMILY_WAIT_S = 0.05
"""How long to wait for one address family after the other has returned addresses."""


class NameNotFound(socket.gaierror):
    """The name has no address, or no server responded."""


class _NextServer(Exception):
    """The current server gave no usable response."""


class DnsResolver(AbstractResolver):
    """Queries the servers in order over UDP, `rounds` times. Names without a dot are resolved by the system."""

    def __init__(self, servers: Sequence[tuple[str, int]], *, wait_s: float = 1, rounds: int = 2) -> None:
        self._servers = [*servers] * rounds
        self._wait_s = wait_s
        self._system = ThreadedResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Return all addresses of `host`. Any `family` other than IPv4 or IPv6 means both.

        Raise `NameNotFound` if the name has no address or no server responds.
        """
        name = host.rstrip(".")
        if "." not in name:
            return await self._system.resolve(host, port, family)
        families = [family] if family in _TYPES else list(_TYPES)
        query_name = _encode_name(name)
        for server in self._servers:
            with suppress(_NextServer, OSError):
                addresses = await self._query(server, query_name, families)
                break
        else:
            raise NameNotFound(f"no DNS server answered for {host}")
        if not addresses:
            raise NameNotFound(f"{host} has no address")
        return [
            ResolveResult(
                hostname=host, host=address, port=port, family=family, proto=0, flags=socket.AI_NUMERICHOST
            )
            for family, address in addresses
        ]

    async def close(self) -> None:
        await self._system.close()

    async def _query(
        self, server: tuple[str, int], name: bytes, families: Sequence[socket.AddressFamily]
    ) -> list[tuple[socket.AddressFamily, str]]:
        loop = asyncio.get_running_loop()
        queries = [_Query(name, family, loop.create_future()) for family in families]
        transport, _ = await loop.create_datagram_endpoint(lambda: _QueryProtocol(queries), remote_addr=server)
        try:
            for query in queries:
                transport.sendto(query.message)
            await _wait_for_responses(queries, self._wait_s)
        finally:
            transport.close()
        results = [(query.family, query.addresses) for query in queries if query.addresses is not None]
        if not results:
            raise _NextServer
        return [(family, address) for family, addresses in results for address in addresses]


class _Query:
    """A query for one name and one address family. Its id is random so that responses cannot be forged."""

    def __init__(self, name: bytes, family: socket.AddressFamily, ended: asyncio.Future[None]) -> None:
        self.family = family
        self.ended = ended
        self.addresses: list[str] | None = None
        """The addresses that the server returned; `None` until it has."""
        self.number = secrets.randbelow(1 << 16)
        self._query_section = name + struct.pack("!2H", _TYPES[family], _INTERNET)

    @property
    def message(self) -> bytes:
        return _HEADER.pack(self.number, _RECURSIVE, 1, 0, 0, 0) + self._query_section

    def receive(self, message: bytes) -> None:
        """Parse a response if it belongs to this query. A server error ends the query without addresses."""
        number, flags, question_count, record_count, *_ = _HEADER.unpack_from(message)
        end = _HEADER.size + len(self._query_section)
        if number != self.number or not flags & _IS_RESPONSE or question_count != 1:
            return
        if message[_HEADER.size : end].lower() != self._query_section.lower():
            return
        if flags & _RCODE in {_NO_ERROR, _NO_SUCH_NAME}:
            self.addresses = list(_addresses(message, end, record_count, self.family))
        self.end()

    def end(self) -> None:
        if not self.ended.done():
            self.ended.set_result(None)


class _QueryProtocol(asyncio.DatagramProtocol):
    def __init__(self, queries: Sequence[_Query]) -> None:
        self._queries = queries

    def datagram_received(self, data: bytes, addr: tuple[str | object, int]) -> None:
        for query in self._queries:
            with suppress(struct.error, IndexError, ValueError):
                query.receive(data)

    def error_received(self, exc: Exception) -> None:
        """End all queries: no DNS server listens at this address."""
        for query in self._queries:
            query.end()


async def _wait_for_responses(queries: Sequence[_Query], wait_s: float) -> None:
    """Wait until all queries have ended, or until one with addresses has waited long enough for the other."""
    waits = {query.ended for query in queries}
    _, late = await asyncio.wait(waits, timeout=wait_s, return_when=asyncio.FIRST_COMPLETED)
    if late and late != waits:
        has_addresses = any(query.addresses for query in queries)
        await asyncio.wait(late, timeout=_OTHER_FAMILY_WAIT_S if has_addresses else wait_s)


def _encode_name(name: str) -> bytes:
    labels = [label.encode() for label in name.split(".")]
    if not name.isascii() or len(name) > _MAX_NAME_LENGTH or not all(0 < len(label) < 64 for label in labels):
        raise NameNotFound(f"{name[:64]} is not a valid name")
    return b"".join(bytes([len(label)]) + label for label in labels) + b"\0"


def _addresses(message: bytes, at: int, records: int, family: socket.AddressFamily) -> Iterator[str]:
    """Yield the addresses of `family` in the answer section.

    Record names are not compared, because the server has already followed the aliases.
    """
    for _ in range(records):
        at = _skip_name(message, at)
        record_type, record_class, _, size = _RECORD.unpack_from(message, at)
        at += _RECORD.size
        if (record_type, record_class, size) == (_TYPES[family], _INTERNET, _SIZES[family]):
            yield socket.inet_ntop(family, message[at : at + size])
        at += size


def _skip_name(message: bytes, at: int) -> int:
    while (size := message[at]) != 0:
        if size >= 0xC0:  # A compression pointer ends the name.
            return at + 2
        at += 1 + size
    return at + 1
