"""Databases in the format of MaxMind (mmdb), with the fields of GeoIP2 City or Country.

Source: https://maxmind.github.io/MaxMind-DB/ and https://dev.maxmind.com/geoip/docs/databases/city-and-country
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import maxminddb

from vendors.geo.database import NO_DATA, UNKNOWN, Address, DamagedFile, Location, degrees

_MARKER = b"\xab\xcd\xefMaxMind.com"
_MARKER_WITHIN_BYTES = 128 * 1024


def is_mmdb(path: Path) -> bool:
    """Return whether a file has the marker of the format near its end."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - _MARKER_WITHIN_BYTES))
        return _MARKER in file.read()


class MmdbFile:
    """An open mmdb file, which is mapped into memory. It must not change."""

    def __init__(self, path: Path) -> None:
        """Open a file. Raises `DamagedFile`."""
        try:
            self._reader = maxminddb.open_database(path)
        except (maxminddb.InvalidDatabaseError, ValueError, OSError) as error:
            raise DamagedFile(f"it is not an mmdb file: {error}") from None
        self.has_ipv6 = self._reader.metadata().ip_version == 6

    def find(self, address: Address) -> Location:
        try:
            found = self._reader.get(address)
        except (maxminddb.InvalidDatabaseError, ValueError, UnicodeDecodeError) as error:
            raise DamagedFile(f"the record of {address} cannot be read: {error}") from None
        if not isinstance(found, dict):
            return UNKNOWN
        country = _part(found, "country") or _part(found, "registered_country")
        place = _part(found, "location")
        return Location(
            country_code=_text(country, "iso_code"),
            country_name=_name(country),
            region=_name(_first(found.get("subdivisions"))),
            city=_name(_part(found, "city")),
            latitude=_degrees(place, "latitude"),
            longitude=_degrees(place, "longitude"),
            zip_code=_text(_part(found, "postal"), "code"),
        )

    def close(self) -> None:
        self._reader.close()


def _part(record: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = record.get(name)
    return part if isinstance(part, dict) else {}


def _first(parts: Any) -> Mapping[str, Any]:
    return parts[0] if isinstance(parts, list) and parts and isinstance(parts[0], dict) else {}


def _text(part: Mapping[str, Any], name: str) -> str:
    value = part.get(name)
    return value if isinstance(value, str) and value else NO_DATA


def _name(part: Mapping[str, Any]) -> str:
    return _text(_part(part, "names"), "en")


def _degrees(part: Mapping[str, Any], name: str) -> str:
    value = part.get(name)
    return degrees(value) if isinstance(value, int | float) else NO_DATA
