"""The database of IP locations of a development server: a few public ranges, in the format of IP2Location (DB9)."""

import struct
from collections.abc import Iterable, Mapping
from ipaddress import ip_network
from itertools import pairwise
from pathlib import Path

from deploy.seeds import AUTHOR
from storage.configs.rows import ConfigKey
from storage.configs.store import ConfigStore
from storage.operators.audit import COMMAND

Place = tuple[str, str, str, str, float, float, str]
"""Country code and name, region, city, latitude, longitude, zip code."""

_BRITAIN = "United Kingdom of Great Britain and Northern Ireland"
_NOWHERE: Place = ("-", "-", "-", "-", 0.0, 0.0, "-")
_RANGES: dict[str, Place] = {
    "1.0.0.0/8": ("AU", "Australia", "Queensland", "Brisbane", -27.46754, 153.02809, "4000"),
    "8.0.0.0/8": ("US", "United States of America", "California", "Mountain View", 37.38605, -122.08385, "94035"),
    "81.0.0.0/8": ("GB", _BRITAIN, "England", "London", 51.50853, -0.12574, "EC1A"),
    "91.0.0.0/8": ("DE", "Germany", "Berlin", "Berlin", 52.52437, 13.41053, "10178"),
    "114.0.0.0/8": ("CN", "China", "Jiangsu", "Nanjing", 32.06167, 118.77778, "210008"),
    "133.0.0.0/8": ("JP", "Japan", "Tokyo", "Tokyo", 35.6895, 139.69171, "100-0001"),
    "2a00::/16": ("DE", "Germany", "Hessen", "Frankfurt am Main", 50.11552, 8.68417, "60311"),
}
_DB9, _COLUMNS, _PRODUCT = 9, 7, 1
_HEADER_BYTES = 64
_LAST4, _LAST6 = 2**32 - 1, 2**128 - 1


async def seed_ip_ranges(configs: ConfigStore, folder: Path) -> None:
    """Write the database to `folder`, and the config that names it, unless an operator has changed the config."""
    path = folder / "ip_ranges.bin"
    write_bin(path, _RANGES)
    async with configs.editing(author=AUTHOR, origin=COMMAND) as edit:
        key = ConfigKey("default", "iplocation", "default")
        await edit.converge(key, {"database": str(path)}, keep_edited_by_others=True)


def write_bin(path: Path, ranges: Mapping[str, Place]) -> None:
    """Write places by network to a BIN file. Networks must not overlap. The file is replaced atomically."""
    networks = sorted((ip_network(text), place) for text, place in ranges.items() if ":" not in text)
    networks6 = sorted((ip_network(text), place) for text, place in ranges.items() if ":" in text)
    rows4 = _rows(((int(net[0]), int(net[-1]), place) for net, place in networks), last=_LAST4)
    rows6 = _rows(((int(net[0]), int(net[-1]), place) for net, place in networks6), last=_LAST6)
    values = (_COLUMNS - 1) * 4
    table4 = _HEADER_BYTES
    table6 = table4 + len(rows4) * (4 + values)
    texts = _Texts(table6 + len(rows6) * (16 + values))
    tables = [
        *(start.to_bytes(4, "little") + _cells(place, texts) for start, place in rows4),
        *(start.to_bytes(16, "little") + _cells(place, texts) for start, place in rows6),
    ]
    content = b"".join(tables) + bytes(texts.written)
    header = struct.pack(
        "<BBBBBIIIIIIBBI",
        _DB9, _COLUMNS, 26, 11, 1,
        len(rows4) - 1, table4 + 1, len(rows6) - 1, table6 + 1,
        0, 0, _PRODUCT, 0, _HEADER_BYTES + len(content),
    )  # fmt: skip
    new = path.with_suffix(".new")
    new.write_bytes(header.ljust(_HEADER_BYTES, b"\0") + content)
    new.replace(path)


def _rows(networks: Iterable[tuple[int, int, Place]], *, last: int) -> list[tuple[int, Place]]:
    """Return where each place begins, with `_NOWHERE` in the gaps. The last row only ends the previous one."""
    bounds = [(-1, -1, _NOWHERE), *networks, (last, last, _NOWHERE)]
    rows: list[tuple[int, Place]] = []
    for (_, end, _), (start, _, place) in pairwise(bounds):
        if start > end + 1:
            rows.append((end + 1, _NOWHERE))
        rows.append((start, place))
    return rows


class _Texts:
    """The strings of the file. Equal ones are stored once."""

    def __init__(self, begin: int) -> None:
        self.written = bytearray()
        self._begin = begin
        self._positions: dict[bytes, int] = {}

    def position(self, data: bytes) -> int:
        if data not in self._positions:
            self._positions[data] = self._begin + len(self.written)
            self.written += data
        return self._positions[data]


def _cells(place: Place, texts: _Texts) -> bytes:
    code, country, region, city, latitude, longitude, zip_code = place
    # Readers expect the name of a country three bytes after its code.
    first = texts.position(_text(code).ljust(3, b"\0") + _text(country))
    area, town, post = (texts.position(_text(name)) for name in (region, city, zip_code))
    return struct.pack("<IIIffI", first, area, town, latitude, longitude, post)


def _text(text: str) -> bytes:
    return bytes([len(text)]) + text.encode("latin-1")
