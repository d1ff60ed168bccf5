"""The interface of databases of IP locations."""

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from typing import Protocol

Address = IPv4Address | IPv6Address
NO_DATA = "-"


@dataclass(frozen=True, slots=True)
class Location:
    """The location of an IP address. Unknown fields are `NO_DATA`."""

    country_code: str = NO_DATA
    """ISO 3166-1, two letters."""
    country_name: str = NO_DATA
    region: str = NO_DATA
    city: str = NO_DATA
    latitude: str = NO_DATA
    """In degrees, with six decimals."""
    longitude: str = NO_DATA
    zip_code: str = NO_DATA


UNKNOWN = Location()


class DamagedFile(Exception):
    """A file is not a database of IP locations, or a part of it cannot be read. The message says what is wrong."""


class GeoDatabase(Protocol):
    """An open database of IP locations."""

    has_ipv6: bool

    def find(self, address: Address) -> Location:
        """Return the location of an address. Raises `DamagedFile`. Takes microseconds and does not block."""

    def close(self) -> None: ...


def degrees(value: float) -> str:
    """Return a latitude or longitude as text."""
    return f"{value:.6f}"
