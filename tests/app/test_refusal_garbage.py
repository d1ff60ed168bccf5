"""Refused requests leave nothing for the garbage collector, whose work would delay every stream of the process."""

import asyncio
import gc
from urllib.parse import urlsplit

import pytest

from tests.servers import Server

REQUESTS = 200
BROKEN = 50


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
            gc.collect()
            gc.disable()
            for _ in range(REQUESTS):
                await refused()
            assert gc.collect() < REQUESTS
    finally:
        gc.enable()
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

    try:
        async with asyncio.timeout(20):
            await refused()
            gc.collect()
            gc.disable()
            for _ in range(BROKEN):
                await refused()
            assert gc.collect() < 5 * BROKEN
    finally:
        gc.enable()
