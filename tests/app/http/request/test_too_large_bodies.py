"""A client that sends a whole body before it reads gets the 413 for a body that is a little too large."""

import asyncio
import socket
from urllib.parse import urlsplit

import pytest

from streams.wire.codec import loads
from tests.running.servers import Server

KIB, MIB = 1024, 1024 * 1024
UPLOAD = "PUT /bp/ai/upload"
IMAGE = "POST /bp/ai/imagine"
LOGIN = "POST /bp/user/login"
BOUNDS = {LOGIN: 128 * KIB, IMAGE: 8 * MIB, UPLOAD: 20 * MIB}


def written_then_read(address: tuple[str, int], request: bytes) -> bytes:
    """Send a request with a client that reads nothing before it has sent everything."""
    with socket.create_connection(address, timeout=60) as client:
        client.sendall(request)
        answer = b""
        while piece := client.recv(64 * KIB):
            answer += piece
        return answer


def chunked(body: bytes) -> bytes:
    parts = [body[at : at + 64 * KIB] for at in range(0, len(body), 64 * KIB)]
    return b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


@pytest.mark.parametrize("is_chunked", [False, True], ids=["length", "chunked"])
@pytest.mark.parametrize("place", BOUNDS)
async def test_a_body_a_little_too_large_is_answered(server: Server, place: str, *, is_chunked: bool) -> None:
    _, session = await server.login()
    url, body = urlsplit(server.url), b" " * (BOUNDS[place] + BOUNDS[place] // 16)
    framing = "Transfer-Encoding: chunked" if is_chunked else f"Content-Length: {len(body)}"
    lines = ("Host: a", f"X-Service-Session-Token: {session}", "Connection: close", framing)
    head = "\r\n".join([f"{place} HTTP/1.1", *lines, "\r\n"])
    request = head.encode() + (chunked(body) if is_chunked else body)
    assert url.hostname is not None
    assert url.port is not None
    answer = await asyncio.to_thread(written_then_read, (url.hostname, url.port), request)
    status, _, rest = answer.partition(b"\r\n")
    assert status == b"HTTP/1.1 413 Request Entity Too Large"
    assert loads(rest.partition(b"\r\n\r\n")[2])["error"]["message"] == (
        f"invalid_parameter: body exceeds {BOUNDS[place]} bytes"
    )
