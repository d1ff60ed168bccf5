"""The bytes that a client may send besides content are bounded. The client gets an error before the close."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from urllib.parse import urlsplit

import pytest

from streams.wire.codec import loads
from tests.running.servers import Server

KIB = 1024
HEAD = b"GET /healthz HTTP/1.1\r\nHost: a\r\n"
UPLOAD = b"POST /bp/user/login HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n"
FIELD = b"x-field: " + b"v" * 1013 + b"\r\n"
"""A field of 1 KiB. Fields are so large that their size is refused before their number."""
HEADER_BLOCK = "invalid_parameter: header block exceeds 16384 bytes"
FRAMING = "invalid_parameter: body: trailers or the extensions of a chunk exceed 16384 bytes"


@pytest.fixture
def server(shared_server: Server) -> Server:
    return shared_server


@dataclass(frozen=True)
class Client:
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, raw: bytes) -> None:
        """Send all of `raw`, or as much as the server takes until it closes."""
        self.writer.write(raw)
        with suppress(ConnectionError):
            async with asyncio.timeout(20):
                await self.writer.drain()

    async def answer(self) -> tuple[int, bytes]:
        async with asyncio.timeout(20):
            head = await self.reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
            return int(head.split()[1]), await self.reader.readexactly(length)

    async def ends(self) -> bool:
        async with asyncio.timeout(20):
            return await self.reader.read() == b""


@asynccontextmanager
async def client(server: Server) -> AsyncIterator[Client]:
    url = urlsplit(server.url)
    reader, writer = await asyncio.open_connection(url.hostname, url.port)
    try:
        yield Client(reader, writer)
    finally:
        writer.close()


@pytest.mark.parametrize(
    ("opening", "rest", "message"),
    [
        pytest.param(UPLOAD + b"0\r\n", FIELD * 64, FRAMING, id="trailers"),
        pytest.param(UPLOAD + b"1;a=", b"b" * 64 * KIB, FRAMING, id="a chunk extension"),
        pytest.param(HEAD, FIELD * 64, HEADER_BLOCK, id="header fields"),
        pytest.param(b"", b"\r\n" * 32 * KIB, HEADER_BLOCK, id="empty lines before a request"),
    ],
)
async def test_framing_beyond_its_bound_is_refused_before_its_end(
    server: Server, opening: bytes, rest: bytes, message: str
) -> None:
    async with client(server) as flooding, client(server) as other:
        await flooding.send(opening + rest)
        status, body = await flooding.answer()
        assert (status, loads(body)["error"]) == (400, {"error_type": "invalid_parameter", "message": message})
        assert await flooding.ends()
        await other.send(HEAD + b"\r\n")
        assert (await other.answer())[0] == 200


async def test_oversized_framing_is_refused_line_by_line(server: Server) -> None:
    async with client(server) as flooding:
        await flooding.send(UPLOAD + b"0\r\n")
        for _ in range(64):
            await flooding.send(FIELD)
            await asyncio.sleep(0)
        status, body = await flooding.answer()
        assert (status, loads(body)["error"]["message"]) == (400, FRAMING)


@pytest.mark.parametrize("fields", [15, 24])
async def test_a_head_may_be_as_large_as_its_limit(server: Server, fields: int) -> None:
    path = b"/" + b"p" * 15 * KIB
    raw = b"GET " + path + b" HTTP/1.1\r\nHost: a\r\n" + FIELD * fields + b"\r\n"
    async with client(server) as asking:
        await asking.send(raw)
        status, body = await asking.answer()
        if fields < 16:
            assert status == 404
        else:
            assert (status, loads(body)["error"]["message"]) == (400, HEADER_BLOCK)


async def test_trailers_within_their_bound_end_a_body(server: Server) -> None:
    body = b'"device":{"id":"trailers"}}'
    raw = UPLOAD + b"%x\r\n%b\r\n0\r\n" % (len(body), body) + FIELD * 14 + b"\r\n"
    async with client(server) as asking:
        for _ in range(3):
            await asking.send(raw)
            assert (await asking.answer())[0] == 200


async def test_the_answer_arrives_although_the_client_keeps_sending(server: Server) -> None:
    """Unread bytes reset a connection, and its answer is lost."""
    async with client(server) as flooding:
        await flooding.send(HEAD + FIELD * 64)
        for _ in range(10):
            await flooding.send(b"x" * 64 * KIB)
        assert (await flooding.answer())[0] == 400
        assert await flooding.ends()


async def sends_without_end(flooding: Client) -> None:
    async with asyncio.timeout(20):
        while True:
            flooding.writer.write(b"x" * 256 * KIB)
            await flooding.writer.drain()


async def test_bytes_after_an_unparsable_request_are_bounded(server: Server) -> None:
    async with client(server) as flooding:
        await flooding.send(HEAD + FIELD * 64)
        with pytest.raises(ConnectionError):
            await sends_without_end(flooding)
