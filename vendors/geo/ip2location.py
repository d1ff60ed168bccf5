"""Databases in the format of IP2Location (BIN).

Source: the package `IP2Location`. Integers are little-endian, and the first byte of the file has the address 1.
"""

import os
import struct
from pathlib import Path

import IP2Location

from vendors.geo.database import NO_DATA, UNKNOWN, Address, DamagedFile, Location

_HEADER = struct.Struct("<BBBBBIIII10xI")
"""Type, columns, year, month, day; the number of rows and the address of the table of IPv4, then of IPv6; the size
of the file, or 0."""
_TYPES = range(1, 27)
_COLUMN_BYTES, _IPV4_BYTES, _IPV6_BYTES = 4, 4, 16
_ABSENT = "This parameter is unavailable"
"""The beginning of the sentence that the package returns for a column which the type of the file has not."""


class Ip2LocationFile:
    """An open BIN file, which is mapped into memory. It must not change."""

    def __init__(self, path: Path) -> None:
        """Open a file. Raises `DamagedFile`."""
        self.has_ipv6 = _check_header(path)
        try:
            self._file = IP2Location.IP2Location(os.fspath(path), "SHARED_MEMORY")
        except (ValueError, OSError, struct.error) as error:
            raise DamagedFile(f"it is not a BIN file: {error}") from None

    def find(self, address: Address) -> Location:
        try:
            found = self._file.get_all(str(address))
        except (ValueError, IndexError, struct.error) as error:
            raise DamagedFile(f"the row of {address} cannot be read: {error}") from None
        if found is None or found.country_short in {NO_DATA, ""}:
            return UNKNOWN
        return Location(
            country_code=_known(found.country_short),
            country_name=_known(found.country_long),
            region=_known(found.region),
            city=_known(found.city),
            latitude=_known(found.latitude),
            longitude=_known(found.longitude),
            zip_code=_known(found.zipcode),
        )

    def close(self) -> None:
        self._file.close()


def _check_header(path: Path) -> bool:
    """Check that the tables are within the file. Return whether it has one for IPv6."""
    with path.open("rb") as file:
        header = file.read(_HEADER.size)
        size = file.seek(0, os.SEEK_END)
    if len(header) < _HEADER.size:
        raise DamagedFile("it is too small for a BIN file")
    kind, columns, _, _, _, rows4, table4, rows6, table6, whole = _HEADER.unpack(header)
    if kind not in _TYPES or not columns:
        raise DamagedFile("it is neither an mmdb nor a BIN file")
    if size < whole:
        raise DamagedFile(f"it is a BIN file of which only {size} of {whole} bytes are there")
    values = (columns - 1) * _COLUMN_BYTES
    for rows, table, width in ((rows4, table4, _IPV4_BYTES), (rows6, table6, _IPV6_BYTES)):
        if rows and (table < 1 or table - 1 + rows * (width + values) > size):
            raise DamagedFile("it is a BIN file that ends before its tables do")
    if not rows4:
        raise DamagedFile("it is a BIN file without IPv4 addresses")
    return bool(rows6)


def _known(value: str | None) -> str:
    return NO_DATA if not value or value.startswith(_ABSENT) else value
