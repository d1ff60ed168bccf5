"""Lookups of vendor names at configured DNS servers: addresses, failures and timeouts."""

import socket
from time import monotonic

import pytest

from tests.vendors.http.upstream import Upstream, plain
from vendors.errors import Unreachable
from vendors.http.client import open_vendor_http
from vendors.http.dns import DnsResolver, NameNotFound
from vendors.http.outgoing import Outgoing
from vendors.sandbox.dns import Names, dns_server


async def addresses(resolver: DnsResolver, name: str, family: int = socket.AF_UNSPEC) -> list[str]:
    return [found["host"] for found in await resolver.resolve(name, 443, socket.AddressFamily(family))]


async def test_addresses_of_both_families_are_found():
    names = Names({"api.vendor.test": ["127.0.0.1", "127.0.0.2", "::1"]})
    async with dns_server(names) as server:
        resolver = DnsResolver([server])
        assert await addresses(resolver, "api.vendor.test") == ["127.0.0.1", "127.0.0.2", "::1"]
        assert await addresses(resolver, "API.vendor.test.", socket.AF_INET6) == ["::1"]


async def test_addresses_of_a_cname_are_found():
    async with dns_server(Names({"api.vendor.test": ["edge.vendor.test", "127.0.0.1"]})) as server:
        assert await addresses(DnsResolver([server]), "api.vendor.test") == ["127.0.0.1"]


async def test_a_missing_name_fails_at_the_first_server():
    first, second = Names(), Names({"gone.vendor.test": ["127.0.0.1"]})
    async with dns_server(first) as one, dns_server(second) as two:
        with pytest.raises(NameNotFound):
            await addresses(DnsResolver([one, two]), "gone.vendor.test")
    assert second.asked == []


@pytest.mark.parametrize("broken", ["silent", "failing"])
async def test_the_next_server_is_queried_if_one_fails(broken: str):
    known = {"api.vendor.test": ["127.0.0.1"]}
    first = Names(known, **{broken: frozenset({"api.vendor.test"})})
    async with dns_server(first) as one, dns_server(Names(known)) as two:
        assert await addresses(DnsResolver([one, two], wait_s=0.5), "api.vendor.test") == ["127.0.0.1"]
    assert first.asked


async def test_the_next_server_is_queried_if_one_is_unreachable():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as nobody:
        nobody.bind(("127.0.0.1", 0))
        closed = nobody.getsockname()
    async with dns_server(Names({"api.vendor.test": ["127.0.0.1"]})) as server:
        began = monotonic()
        assert await addresses(DnsResolver([closed, server], wait_s=5), "api.vendor.test") == ["127.0.0.1"]
    assert monotonic() - began < 2


async def test_queries_time_out_if_no_server_answers():
    async with dns_server(Names(silent=frozenset({"api.vendor.test"}))) as server:
        with pytest.raises(NameNotFound):
            await addresses(DnsResolver([server], wait_s=0.02), "api.vendor.test")


@pytest.mark.parametrize("name", ["a..b", "x" * 64 + ".test", ".".join(["abcdefg"] * 40), "bücher.test"])
async def test_an_invalid_name_is_not_queried(name: str):
    names = Names()
    async with dns_server(names) as server:
        with pytest.raises(NameNotFound):
            await addresses(DnsResolver([server]), name)
    assert names.asked == []


async def test_a_name_without_a_dot_is_resolved_by_the_system():
    assert "127.0.0.1" in await addresses(DnsResolver([]), "localhost", socket.AF_INET)


class Odd(Names):
    """A DNS server that sends incomplete responses, or responses to other queries."""

    part = slice(0)
    number = b""

    def answer(self, message: bytes) -> bytes | None:
        right = super().answer(message) or b""
        return (self.number + right[len(self.number) :])[self.part]


@pytest.mark.parametrize(
    ("part", "number"),
    [(slice(0, 1), b""), (slice(0, 20), b""), (slice(0, -2), b""), (slice(None), b"no")],
    ids=["nothing", "half a question", "half an address", "of another question"],
)
async def test_invalid_responses_are_ignored(part: slice, number: bytes):
    known = {"api.vendor.test": ["127.0.0.1"]}
    odd = Odd(known)
    odd.part, odd.number = part, number
    async with dns_server(odd) as one, dns_server(Names(known)) as two:
        found = await addresses(DnsResolver([one, two], wait_s=0.5), "api.vendor.test", socket.AF_INET)
    assert found == ["127.0.0.1"]
    assert odd.asked


async def test_vendors_are_reached_by_the_names_of_the_servers(upstream: Upstream):
    upstream.respond_with(plain(body=b"{}"))
    async with (
        dns_server(Names({"api.vendor.test": ["127.0.0.1"]})) as server,
        open_vendor_http(dns_servers=[server]) as http,
        http.stream(Outgoing("acme", upstream.url.replace("127.0.0.1", "api.vendor.test"))) as answer,
    ):
        assert await answer.json() == {}


async def test_a_vendor_without_address_is_unreachable():
    async with dns_server(Names()) as server, open_vendor_http(dns_servers=[server]) as http:
        with pytest.raises(Unreachable) as fault:
            async with http.stream(Outgoing("acme", "http://gone.vendor.test/")):
                pass
    assert fault.value.retryable
