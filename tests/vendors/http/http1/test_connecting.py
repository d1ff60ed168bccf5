"""How the HTTP client connects: names, addresses, TLS."""

import asyncio
import ssl
from datetime import timedelta
from ipaddress import ip_address
from pathlib import Path
from socket import AF_INET, AF_INET6, AddressFamily

import aiohttp
import pytest
from aiohttp.abc import AbstractResolver, ResolveResult
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from streams.tasks import background
from tests.calendar.clock import utc_now
from tests.garbage import collected_by_hand, garbage
from tests.vendors.http.http1.peers import WHOLE, ask, gone, played, request, requested
from tests.waiting import passes
from vendors.http.http1.client import open_http1
from vendors.http.http1.connection import Connection
from vendors.http.http1.dns_cache import DnsCache


class Names(AbstractResolver):
    """Resolves one name once `answering` is set."""

    def __init__(self, *addresses: str) -> None:
        self.addresses = list(addresses)
        self.answering = asyncio.Event()
        self.asked: list[str] = []

    async def resolve(self, host: str, port: int = 0, family: AddressFamily = AF_INET) -> list[ResolveResult]:
        self.asked.append(host)
        await self.answering.wait()
        if host != "vendor.test":
            raise OSError("no such name")
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=AF_INET if ip_address(address).version == 4 else AF_INET6,
                proto=0,
                flags=0,
            )
            for address in self.addresses
        ]

    async def close(self) -> None:
        pass


async def answering(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while await request(reader):
        writer.write(WHOLE)


async def test_concurrent_lookups_of_a_name_share_one_query():
    names = Names("127.0.0.1")
    async with played(answering) as url, open_http1(names, idle_s=60) as http1:
        port = url.rstrip("/").rpartition(":")[2]
        asking = asyncio.gather(*(ask(http1, f"http://vendor.test:{port}/") for _ in range(5)))
        await passes()  # All of them wait for the name now.
        assert names.asked == ["vendor.test"]
        names.answering.set()
        assert await asking == [b"ok"] * 5

    assert names.asked == ["vendor.test"]


async def test_unknown_names_fail_all_callers_and_are_queried_again():
    names = Names()
    lookup = DnsCache(names)
    waiting = asyncio.gather(*(lookup.addresses("other.test", 80) for _ in range(3)), return_exceptions=True)
    await passes()
    assert names.asked == ["other.test"]
    names.answering.set()

    assert [str(fault) for fault in await waiting] == ["no such name"] * 3
    assert names.asked == ["other.test"]
    with pytest.raises(OSError, match="no such name"):
        await lookup.addresses("other.test", 80)
    assert len(names.asked) == 2


async def test_name_without_an_address_is_a_fault():
    names = Names()
    names.answering.set()
    with pytest.raises(OSError, match="has no address"):
        await DnsCache(names).addresses("vendor.test", 80)


async def test_a_cancelled_lookup_does_not_affect_other_callers():
    names = Names("127.0.0.1")
    lookup = DnsCache(names)
    async with background(lookup.addresses("vendor.test", 80)) as first:
        await passes()
        async with background(lookup.addresses("vendor.test", 80)) as second:
            await passes()
            assert names.asked == ["vendor.test"]
            first.cancel()
            names.answering.set()
            assert [address[4] for address in await second] == [("127.0.0.1", 80)]
    assert names.asked == ["vendor.test"] * 2


async def test_the_addresses_of_a_name_are_tried_in_turn():
    names = Names("127.0.0.1", "127.0.0.2", "::1")
    names.answering.set()
    lookup = DnsCache(names)

    first = [(await lookup.addresses("vendor.test", 80))[0][4][0] for _ in range(6)]

    assert sorted(first) == sorted(names.addresses * 2)
    assert len(names.asked) == 1


@pytest.mark.parametrize(("host", "family"), [("127.0.0.1", AF_INET), ("::1", AF_INET6)])
async def test_address_is_not_looked_up(host: str, family: AddressFamily):
    names = Names()
    ((found, _, _, _, address),) = await DnsCache(names).addresses(host, 80)

    assert (found, address[:2]) == (family, (host, 80))
    assert names.asked == []


async def test_the_next_address_is_tried_if_one_is_unreachable():
    names = Names("127.0.0.2", "127.0.0.1")  # Nothing listens on the first address.
    names.answering.set()
    async with played(answering) as url, open_http1(names, idle_s=0) as http1:
        port = url.rstrip("/").rpartition(":")[2]
        for _ in range(2):
            assert await ask(http1, f"http://vendor.test:{port}/") == b"ok"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A self-signed certificate for `vendor.test` only."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "vendor.test")])
    now = utc_now()
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("vendor.test")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("tls") / "vendor.pem"
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        + made.public_bytes(serialization.Encoding.PEM)
    )
    return path


@pytest.fixture
def tls_context(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


@pytest.fixture
def client_context(certificate: Path) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(certificate))


async def test_large_bodies_work_in_both_directions_over_tls(
    tls_context: ssl.SSLContext, client_context: ssl.SSLContext
):
    large = bytes(range(256)) * 12_000
    connections = 0

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        while sent := await request(reader):
            got = sent.partition(b"\r\n\r\n")[2]
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(got) + got)

    names = Names("127.0.0.1")
    names.answering.set()
    async with played(echo, tls=tls_context) as url, open_http1(names, idle_s=60, tls=client_context) as http1:
        named = url.replace("127.0.0.1", "vendor.test")
        for _ in range(2):
            assert await ask(http1, named, body=large) == large

    assert connections == 1


async def test_leaving_the_block_closes_a_tls_connection_immediately(
    tls_context: ssl.SSLContext, client_context: ssl.SSLContext
):
    left = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        await gone(reader)
        left.set()

    names = Names("127.0.0.1")
    names.answering.set()
    async with played(silent, tls=tls_context) as url, open_http1(names, idle_s=60, tls=client_context) as http1:
        async with requested(http1, url.replace("127.0.0.1", "vendor.test")) as answer:
            assert answer.status == 200
        async with asyncio.timeout(0.5):
            await left.wait()


async def test_a_certificate_for_another_name_is_not_trusted(
    tls_context: ssl.SSLContext, client_context: ssl.SSLContext
):
    async with (
        played(answering, tls=tls_context) as url,
        open_http1(aiohttp.ThreadedResolver(), idle_s=60, tls=client_context) as http1,
    ):
        with pytest.raises(ssl.SSLCertVerificationError):
            await ask(http1, url)


async def test_unknown_authority_is_not_trusted(tls_context: ssl.SSLContext):
    names = Names("127.0.0.1")
    names.answering.set()
    async with played(answering, tls=tls_context) as url, open_http1(names, idle_s=60) as http1:
        with pytest.raises(ssl.SSLCertVerificationError):
            await ask(http1, url.replace("127.0.0.1", "vendor.test"))


@pytest.mark.parametrize("steps", range(1, 15))
async def test_a_cancelled_attempt_leaves_no_reference_cycle(steps: int):
    """Cancelled at any step: the loop may have told the connection that it is made, and never that it is lost."""
    async with played(answering) as url, open_http1(aiohttp.ThreadedResolver(), idle_s=60) as http1:
        with collected_by_hand():
            for _ in range(5):
                async with background(ask(http1, url)):
                    await passes(steps)
                await passes(10)  # The socket is closed in the next one.
            assert not [item for item in garbage() if isinstance(item, Connection)]
