"""A DNS cache: concurrent connections share one lookup, and its result is kept for a minute."""

import asyncio
import socket
from ipaddress import ip_address
from itertools import cycle, islice

from aiohappyeyeballs import AddrInfoType
from aiohttp.abc import AbstractResolver

from vendors.dns import NameNotFound

_TTL_S = 60
_MAX_NAMES = 1024


class _Name:
    """The cache entry of a name. Callers that wait for a running lookup share its result or its error."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.addresses: list[AddrInfoType] = []
        self.expires_at = 0.0
        self.lookups = 0
        self.fault: NameNotFound | None = None
        self.rotation = 0


class Lookup:
    """Caches the results of `resolver`."""

    def __init__(self, resolver: AbstractResolver) -> None:
        self._resolver = resolver
        self._names: dict[tuple[str, int], _Name] = {}

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
        name = self._name(host, port)
        lookups_before = name.lookups
        if name.expires_at <= loop.time():
            async with name.lock:
                if name.lookups == lookups_before:
                    await self._look_up(name, host, port)
                if name.fault is not None:
                    raise name.fault.with_traceback(None)
        name.rotation += 1
        start = name.rotation % len(name.addresses)
        return list(islice(cycle(name.addresses), start, start + len(name.addresses)))

    async def _look_up(self, name: _Name, host: str, port: int) -> None:
        try:
            results = await self._resolver.resolve(host, port, family=socket.AF_UNSPEC)
            addresses = [_addr_info(item["family"], item["host"], item["port"]) for item in results]
        except UnicodeError:
            name.fault = NameNotFound(f"{host[:64]} is not a valid name")
        except OSError as error:
            name.fault = NameNotFound(str(error))
        else:
            name.fault = None if addresses else NameNotFound(f"{host} has no address")
            name.addresses = addresses
            name.expires_at = asyncio.get_running_loop().time() + (_TTL_S if addresses else 0)
        name.lookups += 1

    def _name(self, host: str, port: int) -> _Name:
        name = self._names.get((host, port))
        if name is None:
            if len(self._names) >= _MAX_NAMES:
                self._names.clear()
            name = self._names[host, port] = _Name()
        return name


def _addr_info(family: int, host: str, port: int) -> AddrInfoType:
    address = (host, port) if family == socket.AF_INET else (host, port, 0, 0)
    return socket.AddressFamily(family), socket.SOCK_STREAM, socket.IPPROTO_TCP, "", address
