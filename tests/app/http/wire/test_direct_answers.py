"""Plain requests of the tracking pixel are answered without the pipeline, and any others by it, alike."""

import asyncio
import socket
from urllib.parse import urlsplit

import pytest

from tests.running.servers import Server
from tests.waiting import passes

PIXEL = b"GET /bp/res/i.gif?e=a%40b.de&mid=x HTTP/1.1\r\nHost: localhost\r\n"
HEALTH = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
IMAGE_BYTES = 43


async def talk(server: Server, *pieces: bytes, bodies: tuple[int, ...]) -> list[tuple[bytes, bytes]]:
    """Send pieces, each when the one before was read, and read responses whose bodies have these lengths."""
    url = urlsplit(server.url)
    reader, writer = await asyncio.open_connection(url.hostname, url.port)
    found = []
    try:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await passes(50)  # The server, in the same loop, reads it alone.
        for length in bodies:
            head = await reader.readuntil(b"\r\n\r\n")
            found.append((head, await reader.readexactly(length)))
    finally:
        writer.close()
        await writer.wait_closed()
    return found


@pytest.mark.parametrize(
    "pieces",
    [
        [PIXEL + b"\r\n"],
        [PIXEL[:20], PIXEL[20:] + b"\r\n"],
        [PIXEL + b"Connection: close\r\n\r\n"],
        [PIXEL + b"Connection: keep-alive\r\nX-Request-Id: mine\r\n\r\n"],
        [PIXEL.replace(b"1.1", b"1.0") + b"\r\n"],
        [PIXEL + b"Content-Length: 2\r\n\r\n", b"{}"],
        [PIXEL + b"Content-Length: 2\r\n\r\n{}"],
        [PIXEL + b"Origin: https://example.com\r\n\r\n"],
        [PIXEL + b"X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-For: 192.0.2.2\r\n\r\n"],
    ],
)
async def test_the_image_is_the_same_however_it_is_asked_for(shared_server: Server, pieces: list[bytes]):
    [(head, body)] = await talk(shared_server, *pieces, bodies=(IMAGE_BYTES,))
    assert head.split(b" ")[1] == b"200"
    assert body.startswith(b"GIF89a")
    lowered = head.lower()
    for field in (b"content-type: image/gif", b"cache-control: no-store", b"pragma: no-cache", b"server: parley",
                  b"x-request-id: ", b"date: "):  # fmt: skip
        assert field in lowered
    if b"mine" in pieces[0]:
        assert b"x-request-id: mine" in lowered


async def test_the_first_request_of_a_connection_is_answered_directly(shared_server: Server):
    url = urlsplit(shared_server.url)
    for _ in range(5):
        # The request arrives together with the connection.
        connected = socket.create_connection((url.hostname, url.port))
        connected.sendall(PIXEL + b"\r\n")
        reader, writer = await asyncio.open_connection(sock=connected)
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 OK\r\nContent-Type: image/gif\r\nCache-Control: ")
        writer.close()
        await writer.wait_closed()


async def test_responses_on_one_connection_are_in_the_order_of_their_requests(shared_server: Server):
    pixel, health = PIXEL + b"\r\n", len(b'{"status":"ok"}')
    bodies = (health, IMAGE_BYTES, IMAGE_BYTES, health, IMAGE_BYTES)
    found = await talk(shared_server, HEALTH, pixel, pixel, HEALTH, pixel, bodies=bodies)
    assert [body[:3] for _, body in found] == [b'{"s', b"GIF", b"GIF", b'{"s', b"GIF"]
    found = await talk(shared_server, HEALTH + pixel + pixel + HEALTH + pixel, bodies=bodies)
    assert [body[:3] for _, body in found] == [b'{"s', b"GIF", b"GIF", b'{"s', b"GIF"]


@pytest.mark.parametrize(
    "request_",
    [
        *(PIXEL + field for field in (b"Broken\r\n", b" folded: x\r\n", b"A b: c\r\n")),
        PIXEL + b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n",
        PIXEL.replace(b"mid=x", b"mid=\nX:x"),
    ],
)
async def test_what_is_not_valid_http_is_refused_as_elsewhere(shared_server: Server, request_: bytes):
    url = urlsplit(shared_server.url)
    reader, writer = await asyncio.open_connection(url.hostname, url.port)
    writer.write(request_ + b"\r\n")
    # A line feed in the first line makes it a request of HTTP/0.9.
    expected = b"505" if b"\nX:x" in request_ else b"400"
    assert (await reader.readline()).split(b" ")[1] == expected
    writer.close()
    await writer.wait_closed()
