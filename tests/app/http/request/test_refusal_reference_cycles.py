"""Refused and unfinished requests leave nothing for the garbage collector, whose work would delay every stream."""

import asyncio
import gc
import socket
from urllib.parse import urlsplit

import pytest
from aiohttp import web
from prometheus_client import REGISTRY

from tests.garbage import collected_by_hand
from tests.running.servers import Server
from tests.waiting import passes, until

REQUESTS = 200
BROKEN = 50
LEAVERS = 20


@pytest.fixture
def server(shared_server: Server) -> Server:
    return shared_server


@pytest.mark.parametrize(
    ("status", "raw"),
    [
        (404, "GET /nothing HTTP/1.1\r\nHost: a\r\n\r\n"),
        (405, "DELETE /healthz HTTP/1.1\r\nHost: a\r\n\r\n"),
        (400, "GET /bp/ai/conversations HTTP/1.1\r\nHost: a\r\n\r\n"),
        (400, "POST /bp/user/login HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{]"),
        (413, "POST /bp/user/login HTTP/1.1\r\nHost: a\r\nContent-Length: 200000\r\n\r\n" + "x" * 200_000),
    ],
)
async def test_a_refused_request_leaves_no_reference_cycle(server: Server, status: int, raw: str) -> None:
    url = urlsplit(server.url)
    reader, writer = await asyncio.open_connection(url.hostname, url.port)

    async def refused() -> None:
        writer.write(raw.encode())
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        assert head.startswith(b"http/1.1 %d " % status)
        await reader.readexactly(int(head.partition(b"content-length: ")[2].split(b"\r\n")[0]))

    try:
        async with asyncio.timeout(20):
            await refused()
            with collected_by_hand():
                for _ in range(REQUESTS):
                    await refused()
                assert gc.collect() < REQUESTS
    finally:
        writer.close()


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(b"nonsense\r\n\r\n", id="no request line"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: a\r\n" + b"x: a\r\n" * 2000, id="too many fields"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"v" * 64_000, id="a field that is too long"),
    ],
)
async def test_a_request_that_cannot_be_parsed_leaves_no_reference_cycle(server: Server, raw: bytes) -> None:
    url = urlsplit(server.url)

    async def refused() -> None:
        reader, writer = await asyncio.open_connection(url.hostname, url.port)
        writer.write(raw)
        assert (await reader.read()).startswith(b"HTTP/1.1 400 ")
        writer.close()
        await writer.wait_closed()

    async with asyncio.timeout(20):
        await refused()
        with collected_by_hand():
            for _ in range(BROKEN):
                await refused()
            assert gc.collect() < 5 * BROKEN


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(b"GET /docs/scalar.js HTTP/1.1\r\nHost: a\r\n\r\n", id="with an answer half read"),
        pytest.param(
            b"POST /bp/user/login HTTP/1.1\r\nHost: a\r\nContent-Length: 99\r\n\r\n{",
            id="in the middle of an upload",
        ),
    ],
)
async def test_a_client_that_leaves_leaves_no_reference_cycle(server: Server, raw: bytes) -> None:
    url = urlsplit(server.url)
    loop = asyncio.get_running_loop()

    async def leave() -> None:
        opened = open_connections()
        with socket.socket() as client:
            client.setblocking(False)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            await loop.sock_connect(client, (url.hostname, url.port))
            await loop.sock_sendall(client, raw)
            if raw.startswith(b"GET"):
                assert await loop.sock_recv(client, 12) == b"HTTP/1.1 200"
            else:
                await until(lambda: open_connections() > opened, within_s=20)
                await passes()  # The server reads the request.
        await until(lambda: open_connections() == opened, within_s=20)

    async with asyncio.timeout(60):
        await leave()
        with collected_by_hand():
            for _ in range(LEAVERS):
                await leave()
            # A task may still hold the last request. A cycle would keep it for as long as the collector is off.
            await until(lambda: not of_requests(), within_s=20)


def of_requests() -> list[web.BaseRequest | web.Response]:
    """Return those that were created since collections are done by hand."""
    return [item for item in gc.get_objects() if isinstance(item, web.BaseRequest | web.Response)]


def open_connections() -> float:
    return REGISTRY.get_sample_value("parley_connections") or 0
