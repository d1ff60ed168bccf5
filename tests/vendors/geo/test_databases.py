"""Files in both formats have for every address the place that the list has from which they were written."""

import random
from bisect import bisect
from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address, ip_network
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mmdb_writer import MMDBWriter
from netaddr import IPSet

from app.geo.addresses import parse_forwarded
from deploy.ip_ranges import Place, write_bin
from vendors.geo.database import UNKNOWN, Address, DamagedFile, GeoDatabase
from vendors.geo.ip2location import Ip2LocationFile
from vendors.geo.mmdb import MmdbFile

MANY = [3_000, pytest.param(100_000, marks=pytest.mark.soak)]


def networks(rng: random.Random, *, ipv6: bool, count: int = 400) -> dict[str, Place]:
    """Places of networks that do not overlap, of all sizes."""
    bits, top = (128, 16) if ipv6 else (32, 8)
    chosen: dict[str, Place] = {}
    for number in rng.sample(range(1, 2**top), min(count, 2**top - 1)):
        size = rng.randint(top, bits)
        base = (number << (bits - top)) | (rng.getrandbits(bits - top) >> (bits - size) << (bits - size))
        network = f"{IPv6Address(base) if ipv6 else IPv4Address(base)}/{size}"
        code = rng.choice(("DE", "JP", "FR"))
        chosen[network] = (code, f"Country {code}", "Région", f"City {number}", 1.5, -2.25, str(number))
    return chosen


def bin_file(path: Path, places: dict[str, Place]) -> GeoDatabase:
    write_bin(path, places)
    return Ip2LocationFile(path)


def mmdb_file(path: Path, places: dict[str, Place]) -> GeoDatabase:
    writer = MMDBWriter(6, "GeoIP2-City", ipv4_compatible=True)
    for network, (code, country, region, city, latitude, longitude, zip_code) in places.items():
        record = {
            "country": {"iso_code": code, "names": {"en": country}},
            "subdivisions": [{"names": {"en": region}}],
            "city": {"names": {"en": city}},
            "location": {"latitude": latitude, "longitude": longitude},
            "postal": {"code": zip_code},
        }
        writer.insert_network(IPSet([network]), record)
    writer.to_db_file(str(path))
    return MmdbFile(path)


def some_addresses(rng: random.Random, places: dict[str, Place], count: int) -> list[Address]:
    """Addresses at the bounds of the networks, beside them, in them and anywhere."""
    found: list[Address] = []
    parsed_networks = [ip_network(place) for place in places]
    while len(found) < count:
        network = rng.choice(parsed_networks)
        first, last = int(network[0]), int(network[-1])
        top = 2**network.max_prefixlen - 1
        number = rng.choice(
            (first, last, max(0, first - 1), min(top, last + 1), rng.randint(first, last), rng.randint(0, top))
        )
        found.append(IPv4Address(number) if network.version == 4 else IPv6Address(number))
    return found


@pytest.mark.parametrize("count", MANY)
@pytest.mark.parametrize("make", [bin_file, mmdb_file])
def test_every_address_has_the_place_of_its_network(
    tmp_path: Path, make: Callable[[Path, dict[str, Place]], GeoDatabase], count: int
) -> None:
    rng = random.Random(f"{make.__name__} {count}")  # noqa: S311
    places = networks(rng, ipv6=False) | networks(rng, ipv6=True)
    database = make(tmp_path / "file", places)
    ordered = {
        version: sorted(
            (int(net[0]), int(net[-1]), text) for text in places if (net := ip_network(text)).version == version
        )
        for version in (4, 6)
    }
    known = 0
    for address in some_addresses(rng, places, count):
        if isinstance(address, IPv6Address) and (address.ipv4_mapped or address.sixtofour or address.teredo):
            continue  # Its IPv4 address is looked up instead.
        rows = ordered[address.version]
        index = bisect(rows, int(address), key=lambda row: row[0]) - 1
        place = places[rows[index][2]] if index >= 0 and int(address) <= rows[index][1] else None
        found = database.find(address)
        if place is None:
            assert found == UNKNOWN, address
            continue
        known += 1
        expected = (*place[:4], f"{place[4]:.6f}", f"{place[5]:.6f}", place[6])
        seen = (found.country_code, found.country_name, found.region, found.city, found.latitude, found.longitude)
        assert (*seen, found.zip_code) == expected, address
    assert known > count / 4
    database.close()


@given(data=st.data())
def test_damaged_file_is_refused_or_answers(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    folder = tmp_path_factory.mktemp("damaged")
    make = data.draw(st.sampled_from((bin_file, mmdb_file)))
    make(folder / "file", networks(random.Random(1), ipv6=False, count=20)).close()  # noqa: S311
    content = bytearray((folder / "file").read_bytes())
    del content[data.draw(st.integers(0, len(content))) :]
    for _ in range(data.draw(st.integers(0, 20))):
        if content:
            content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    (folder / "file").write_bytes(content)
    try:
        database = (Ip2LocationFile if make is bin_file else MmdbFile)(folder / "file")
    except DamagedFile:
        return
    for number in range(0, 2**32, 2**27):
        try:
            database.find(IPv4Address(number))
        except DamagedFile:
            continue
    database.close()


@given(st.text(max_size=60) | st.ip_addresses().map(str))
def test_text_is_an_address_or_nothing(text: str) -> None:
    address = parse_forwarded(text)
    assert address is None or parse_forwarded(str(address)) == address


@given(st.ip_addresses(v=6).filter(lambda address: address.ipv4_mapped is None), st.integers(0, 65535))
def test_address_may_have_brackets_and_a_port(address: IPv6Address, port: int) -> None:
    assert parse_forwarded(f"[{address}]") == parse_forwarded(f"[{address}]:{port}") == address
    assert parse_forwarded(f"1.2.3.4:{port}") == IPv4Address("1.2.3.4")
