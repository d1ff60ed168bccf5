"""Connection errors of vendors: the message has the cause, and the log has host and port."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from tests.peers.certificates import Authority
from tests.vendors.http.http1.peers import WHOLE, gone, played, request
from tests.vendors.http.http_calls import failing, failing_handshake
from vendors.calls.attempts import Attempt
from vendors.calls.fallback import AllStrategiesFailed, first_success
from vendors.errors import Garbled, TimedOut, Unreachable, VendorError
from vendors.http.client import open_vendor_http
from vendors.http.outgoing import Outgoing
from vendors.http.transport import VendorHttp
from vendors.sandbox.dns import Names, dns_server

HOST = "api.vendor.test"
NAMES = Names({HOST: ["127.0.0.1"]}, silent=frozenset({"slow.vendor.test"}))


Fails = Callable[..., Awaitable[VendorError]]


@pytest.fixture(params=[failing, failing_handshake], ids=["request", "handshake"])
def fails(request: pytest.FixtureRequest) -> Fails:
    """Make a request or open a WebSocket, and return its error. Each has its own client and exceptions."""
    return request.param


@asynccontextmanager
async def opened(tls: ssl.SSLContext | None = None) -> AsyncIterator[VendorHttp]:
    async with dns_server(NAMES) as server, open_vendor_http(dns_servers=[server], tls=tls) as http:
        yield http


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


async def answering(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while await request(reader):
        writer.write(WHOLE)


async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await gone(reader)


async def resetting(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Close with a zero linger time, which resets the connection."""
    await reader.readexactly(1)
    sock = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    writer.transport.abort()


def cause(fault: VendorError) -> str:
    return str(fault).removeprefix("backend unavailable: acme was not reached: ")


async def test_a_refused_connection_is_named_as_the_cause(fails: Fails):
    port = closed_port()
    async with opened() as http:
        fault = await fails(http, f"http://{HOST}:{port}/")

    assert (type(fault), fault.retryable, cause(fault)) == (Unreachable, True, "connection refused")
    assert fault.address == f"{HOST}:{port}"


async def test_names_that_do_not_exist_are_reported(fails: Fails):
    async with opened() as http:
        fault = await fails(http, "https://typo.vendor.test/v1/chat?key=secret")

    assert (type(fault), cause(fault)) == (Unreachable, "its host name was not resolved")
    assert (fault.address, "typo.vendor.test" in fault.detail) == ("typo.vendor.test:443", True)
    assert "secret" not in fault.detail


async def test_a_call_to_public_addresses_only_connects_to_no_other():
    async with opened() as http, played(resetting) as url:
        faults = [await failing(http, target, public_only=True) for target in (url, url.replace("127.0.0.1", HOST))]

    assert {cause(fault) for fault in faults} == {"its host has no public address"}


async def test_a_reset_connection_is_named_as_the_cause(fails: Fails):
    async with opened() as http, played(resetting) as url:
        fault = await fails(http, url)

    assert (type(fault), cause(fault)) == (Unreachable, "the connection was reset")


async def test_connection_that_is_closed_without_an_answer(fails: Fails):
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request(reader)

    async with opened() as http, played(hang_up) as url:
        fault = await fails(http, url)

    assert (type(fault), cause(fault)) == (Unreachable, "the connection was closed without an answer")


async def test_the_query_of_a_call_is_not_in_the_details_of_an_invalid_response(fails: Fails):
    async def garbage(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request(reader)
        writer.write(b"what is HTTP?\r\n\r\n")

    async with opened() as http, played(garbage) as url:
        fault = await fails(http, f"{url}/check?access_token=secret")

    assert isinstance(fault, Garbled)
    assert fault.detail
    assert "secret" not in f"{fault} {fault.detail} {fault.address}"


@pytest.mark.parametrize(
    ("host", "days", "reported"),
    [
        (HOST, (-3, -1), "its TLS certificate has expired"),
        (HOST, (1, 3), "its TLS certificate is not valid yet"),
        ("other.vendor.test", (-1, 1), "its TLS certificate is for another host name"),
    ],
)
async def test_untrusted_certificates_are_refused(
    fails: Fails, tmp_path: Path, host: str, days: tuple[int, int], reported: str
):
    authority = Authority(tmp_path)
    ours = ssl.create_default_context(cafile=str(authority.path))
    async with opened(ours) as http, played(answering, tls=authority.server(host, days=days)) as url:
        fault = await fails(http, url.replace("127.0.0.1", HOST))

    assert (type(fault), cause(fault)) == (Unreachable, reported)
    assert fault.detail.strip()


async def test_certificates_of_unknown_authorities_are_refused(fails: Fails, tmp_path: Path):
    async with opened() as http, played(answering, tls=Authority(tmp_path).server(HOST)) as url:
        fault = await fails(http, url.replace("127.0.0.1", HOST))

    assert cause(fault) == "its TLS certificate comes from an unknown authority"


async def test_tls_to_a_plain_http_server_is_reported(fails: Fails):
    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    async with opened() as http, played(plain) as url:
        fault = await fails(http, url.replace("http:", "https:"))

    assert cause(fault).startswith("the TLS handshake failed: ")


async def test_hanging_tls_handshakes_time_out(fails: Fails):
    async with opened() as http, played(silent) as url:
        fault = await fails(http, url.replace("http:", "https:"), connect_s=0.5)

    missing = "no TLS handshake" if fails is failing else "no connection"
    assert (type(fault), cause(fault)) == (TimedOut, f"{missing} within 0.5 s")


async def test_a_silent_name_server_times_out(fails: Fails):
    async with opened() as http:
        fault = await fails(http, "http://slow.vendor.test/", connect_s=0.25)

    missing = "no address of its host name" if fails is failing else "no connection"
    assert (type(fault), cause(fault)) == (TimedOut, f"{missing} within 0.25 s")


async def test_log_line_of_a_failed_attempt_names_host_and_port():
    port = closed_port()
    async with opened() as http:
        call = Outgoing("acme", f"http://user:secret@{HOST}:{port}/v1?key=secret")
        attempt = Attempt("one", "llm", "acme", lambda: http.stream(call), bool, first_output_s=5, between_s=5)
        with capture_logs() as lines, pytest.raises(AllStrategiesFailed) as failed:
            async with first_success([attempt]):
                pass

    (line,) = [line for line in lines if line["event"] == "attempt.failed"]
    assert line["error"] == "backend unavailable: acme was not reached: connection refused"
    assert line["address"] == f"{HOST}:{port}"
    assert "secret" not in str(line)
    assert HOST not in str(failed.value.extra)
