"""The addresses of names: looked up once for many connections, and known for a minute."""

import asyncio
import socket
from ipaddress import ip_address
from itertools import cycle, islice

from aiohappyeyeballs import AddrInfoType
from aiohttp.abc import AbstractResolver

from vendors.dns import NameNotFound

_KNOWN_S = 60
_MOST_NAMES = 1024


class _Name:
    """One name. Who comes while it is looked up waits for what that gives, be it a fault."""

    def __init__(self) -> None:
        self.looking = asyncio.Lock()
        self.found: list[AddrInfoType] = []
        self.until = 0.0
        self.looked = 0
        self.fault: NameNotFound | None = None
        self.turn = 0


class Lookup:
    """Asks the resolver of the process."""

    def __init__(self, resolver: AbstractResolver) -> None:
        self._resolver = resolver
        self._names: dict[tuple[str, int], _Name] = {}

    async def addresses(self, host: str, port: int) -> list[AddrInfoType]:
        """All of them, each time another one first. `NameNotFound` where the name is not known."""
        try:
            literal = ip_address(host)
        except ValueError:
            return await self._looked_up(host, port)
        family = socket.AF_INET if literal.version == 4 else socket.AF_INET6
        return [_connectable(family, host, port)]

    async def _looked_up(self, host: str, port: int) -> list[AddrInfoType]:
        loop = asyncio.get_running_loop()
        name = self._name(host, port)
        before = name.looked
        if name.until <= loop.time():
            async with name.looking:
                if name.looked == before:
                    await self._look_up(name, host, port)
                if name.fault is not None:
                    raise name.fault.with_traceback(None)
        name.turn += 1
        start = name.turn % len(name.found)
        return list(islice(cycle(name.found), start, start + len(name.found)))

    async def _look_up(self, name: _Name, host: str, port: int) -> None:
        try:
            told = await self._resolver.resolve(host, port, family=socket.AF_UNSPEC)
            found = [_connectable(one["family"], one["host"], one["port"]) for one in told]
        except UnicodeError:
            name.fault = NameNotFound(f"{host[:64]} is no name")
        except OSError as error:
            name.fault = NameNotFound(str(error))
        else:
            name.fault = None if found else NameNotFound(f"{host} has no address")
            name.found = found
            name.until = asyncio.get_running_loop().time() + (_KNOWN_S if found else 0)
        name.looked += 1

    def _name(self, host: str, port: int) -> _Name:
        name = self._names.get((host, port))
        if name is None:
            if len(self._names) >= _MOST_NAMES:
                self._names.clear()
            name = self._names[host, port] = _Name()
        return name


def _connectable(family: int, host: str, port: int) -> AddrInfoType:
    address = (host, port) if family == socket.AF_INET else (host, port, 0, 0)
    return socket.AddressFamily(family), socket.SOCK_STREAM, socket.IPPROTO_TCP, "", address
