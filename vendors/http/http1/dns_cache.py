"""A DNS cache: concurrent connections share one lookup, and its result is kept for a minute."""

import asyncio
import socket
from ipaddress import ip_address
from itertools import cycle, islice

from aiohappyeyeballs import AddrInfoType
from aiohttp.abc import AbstractResolver

from streams.kept_errors import copy_of
from vendors.http.dns import NameNotFound

_TTL_S = 60
_MAX_NAMES = 1024


class _Entry:
    """The cache entry of a name. Callers that wait for a running lookup share its result or its error."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.addresses: list[AddrInfoType] = []
        self.expires_at = 0.0
        self.lookups = 0
        self.fault: NameNotFound | None = None
        self.rotation = 0


class DnsCache:
    """Caches the results of `resolver`."""

    def __init__(self, resolver: AbstractResolver) -> None:
        self._resolver = resolver
        self._entries: dict[tuple[str, int], _Entry] = {}

    async def addresses(self, host: str, port: int) -> list[AddrInfoType]:
        """Return all addresses of `host`, rotated by one at each call. Raise `NameNotFound` if it has none."""
        try:
            literal = ip_address(host)
        except ValueError:
            return await self._cached(host, port)
        family = socket.AF_INET if literal.version == 4 else socket.AF_INET6
        return [_addr_info(family, host, port)]

    async def _cached(self, host: str, port: int) -> list[AddrInfoType]:
        loop = asyncio.get_running_loop()
        entry = self._entry(host, port)
        lookups_before = entry.lookups
        if entry.expires_at <= loop.time():
            async with entry.lock:
                if entry.lookups == lookups_before:
                    await self._look_up(entry, host, port)
                if entry.fault is not None:
                    raise copy_of(entry.fault)
        entry.rotation += 1
        start = entry.rotation % len(entry.addresses)
        return list(islice(cycle(entry.addresses), start, start + len(entry.addresses)))

    async def _look_up(self, entry: _Entry, host: str, port: int) -> None:
        try:
            results = await self._resolver.resolve(host, port, family=socket.AF_UNSPEC)
            addresses = [_addr_info(item["family"], item["host"], item["port"]) for item in results]
        except UnicodeError:
            entry.fault = NameNotFound(f"{host[:64]} is not a valid name")
        except OSError as error:
            entry.fault = NameNotFound(str(error))
        else:
            entry.fault = None if addresses else NameNotFound(f"{host} has no address")
            entry.addresses = addresses
            entry.expires_at = asyncio.get_running_loop().time() + (_TTL_S if addresses else 0)
        entry.lookups += 1

    def _entry(self, host: str, port: int) -> _Entry:
        entry = self._entries.get((host, port))
        if entry is None:
            if len(self._entries) >= _MAX_NAMES:
                self._entries.clear()
            entry = self._entries[host, port] = _Entry()
        return entry


def _addr_info(family: int, host: str, port: int) -> AddrInfoType:
    address = (host, port) if family == socket.AF_INET else (host, port, 0, 0)
    return socket.AddressFamily(family), socket.SOCK_STREAM, socket.IPPROTO_TCP, "", address
