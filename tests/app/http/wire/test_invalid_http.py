"""Invalid HTTP and clients that disconnect: the response has the envelope, and nothing is logged as a crash."""

import asyncio
import logging
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import pytest
from prometheus_client import REGISTRY
from structlog.testing import capture_logs
from structlog.typing import EventDict

from streams.wire.codec import loads
from tests.running.servers import ADMIN_TOKEN, Server
from tests.waiting import passes, until

NOT_HTTP = {
    "error": {"error_type": "invalid_parameter", "message": "invalid_parameter: the request is not valid HTTP"}
}


@pytest.fixture
def server(guest: Server) -> Server:
    return guest


@asynccontextmanager
async def connection(server: Server) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    url = urlsplit(server.url)
    reader, writer = await asyncio.open_connection(url.hostname, url.port)
    try:
        yield reader, writer
    finally:
        writer.close()


async def answer(server: Server, raw: bytes) -> tuple[int, dict[str, str], bytes]:
    """Send raw bytes. Return the status, the headers and the body of the response."""
    async with connection(server) as (reader, writer):
        writer.write(raw)
        head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    status, *lines = head.decode().split("\r\n")
    return int(status.split()[1]), dict(line.split(": ", 1) for line in lines), body


@pytest.mark.parametrize(
    "raw",
    [
        b"nonsense\r\n\r\n",
        b"G<b>ET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nbad header\x00: 1\r\n\r\n",
        b"GET /" + b"x" * 20_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nX-Long: " + b"x" * 20_000 + b"\r\n\r\n",
        b"POST /bp/user/login HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n",
        b"POST /bp/user/login HTTP/1.1\r\nHost: a\r\nExpect: a <b>miracle\r\nContent-Length: 2\r\n\r\n{}",
        b"GET /nothing HTTP/1.1\r\nHost: a\r\nExpect: a <b>miracle\r\n\r\n",
    ],
)
async def test_invalid_http_gets_the_envelope_without_its_own_bytes(server: Server, raw: bytes) -> None:
    answers = []

    async def leaves_a_line() -> bool:
        answers.append(await answer(server, raw))
        return "request.malformed" in [line["event"] for line in lines]

    with capture_logs() as lines:
        await until(leaves_a_line)  # Earlier tests may have used up the lines of this second.
    status, headers, body = answers[-1]
    assert (status, loads(body)) == (400, NOT_HTTP)
    assert headers["Content-Type"] == "application/json"
    assert (headers["Server"], headers["Cache-Control"]) == ("parley", "no-store")
    logged = [line for line in lines if line["event"].startswith("request") and "request_id" in line]
    assert [(line["event"], line["request_id"]) for line in logged] == [
        ("request.malformed", headers["X-Request-Id"])
    ]


async def test_a_request_id_is_used_if_the_head_could_be_read(server: Server) -> None:
    raw = b"GET /healthz HTTP/1.1\r\nHost: a\r\nExpect: much\r\nX-Request-Id: mine\r\n\r\n"
    _, headers, _ = await answer(server, raw)
    assert headers["X-Request-Id"] == "mine"


async def test_a_body_with_malformed_chunks_is_refused(server: Server) -> None:
    raw = b"POST /bp/user/login HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{ \r\nzz\r\n"
    with capture_logs() as lines:
        status, _, body = await answer(server, raw)
    assert (status, loads(body)) == (400, NOT_HTTP)
    assert "request.crashed" not in [line["event"] for line in lines]


async def test_a_body_with_a_malformed_later_chunk_is_refused_immediately(server: Server) -> None:
    head = b"POST /bp/user/login HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{ \r\n"
    async with connection(server) as (reader, writer):
        writer.write(head)
        await passes()  # The server reads this packet.
        with capture_logs() as lines:
            writer.write(b"zz\r\n")
            async with asyncio.timeout(3):
                assert b"HTTP/1.1 400 Bad Request" in await reader.read()
    assert "request.crashed" not in [line["event"] for line in lines]


@pytest.mark.parametrize("coding", ["gzip, chunked", "gzip,chunked", "identity, chunked", ",chunked", ""])
async def test_a_body_in_a_coding_beside_chunked_is_refused_undecoded(server: Server, coding: str) -> None:
    raw = f"POST /bp/user/login HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: {coding}\r\n\r\n"
    status, headers, body = await answer(server, raw.encode())  # Reads until the server closes the connection.
    assert (status, headers["Connection"]) == (501, "close")
    assert loads(body)["error"]["message"] == "invalid_parameter: Transfer-Encoding must be chunked"


@pytest.mark.parametrize("coding", ["chunked", "CHUNKED", "  Chunked  "])
async def test_the_name_of_the_coding_may_have_any_case_and_spaces_around_it(server: Server, coding: str) -> None:
    body = '{"device": {"id": "a-coin"}}'
    raw = (
        f"POST /bp/user/login HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding:{coding}\r\n\r\n"
        f"{len(body):x}\r\n{body}\r\n0\r\n\r\n"
    )
    status, _, _ = await answer(server, raw.encode())
    assert status == 200


@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("GET /healthz HTTP/2.0", 505),
        ("GET /healthz HTTP/0.9", 505),
        ("GET /healthz", 505),
        ("GET /healthz HTTP/3.7", 400),
        ("GET /healthz HTTP/1.2", 400),
        ("PRI * HTTP/2.0", 400),
    ],
)
async def test_another_version_of_http_is_refused_in_http_1_1(server: Server, line: str, status: int) -> None:
    async with connection(server) as (reader, writer):
        writer.write(f"{line}\r\nHost: a\r\n\r\n".encode())
        head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 %d " % status)
    assert loads(body)["error"]["error_type"] == "invalid_parameter"


async def test_http_1_0_is_answered_and_has_no_chunks(server: Server) -> None:
    status, _, _ = await answer(server, b"GET /healthz HTTP/1.0\r\n\r\n")
    assert status == 200
    raw = b"POST /bp/user/login HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"
    status, _, body = await answer(server, raw)
    assert (status, loads(body)) == (400, NOT_HTTP)


async def test_an_encoded_body_is_refused_undecoded(server: Server) -> None:
    raw = (
        b"POST /bp/user/login HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"
        b"Content-Encoding: deflate\r\nContent-Length: 3\r\n\r\nabc"
    )
    status, _, body = await answer(server, raw)
    assert status == 400
    assert loads(body)["error"]["message"] == "invalid_parameter: Content-Encoding is not supported in requests"


@pytest.mark.parametrize("path", ["/healthz", "/bp/user/login", "/nothing"])
async def test_a_header_block_over_its_limit_is_refused(server: Server, path: str) -> None:
    def headers(size: int) -> bytes:
        return b"Host: a\r\nConnection: close\r\nX-A: %b\r\nX-B: %b\r\n" % (
            b"a" * 8_000,
            b"b" * (size - 8_000 - 42),
        )

    status, reported, body = await answer(
        server, b"GET %b HTTP/1.1\r\n%b\r\n" % (path.encode(), headers(16_384 + 1))
    )
    assert status == 400
    assert loads(body)["error"]["message"] == "invalid_parameter: header block exceeds 16384 bytes"
    assert reported["X-Request-Id"]
    _, _, body = await answer(server, b"GET %b HTTP/1.1\r\n%b\r\n" % (path.encode(), headers(16_384)))
    assert b"header block" not in body


@pytest.mark.parametrize(
    ("method", "path", "what"),
    [
        ("GET", "/admin/api/configs?app=%00", "app"),
        ("GET", "/admin/api/configs?app=default&a%00=1", "query"),
        ("GET", "/admin/api/configs/a%00/speech/s", "app"),
        ("GET", "/admin/api/configs/a%00/speech/s/revisions", "app"),
        ("POST", "/admin/api/configs/default/speech/a%00b/validate", "name"),
        ("GET", "/bp/server/user/%00", "user_id"),
        ("GET", "/files/a/%00", "key"),
        ("GET", "/bp/ai/conversation/query?conversation_id=%00", "conversation_id"),
    ],
)
async def test_the_character_zero_is_refused_in_paths_and_queries(
    server: Server, method: str, path: str, what: str
) -> None:
    raw = f"{method} {path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {ADMIN_TOKEN}\r\nConnection: close\r\n\r\n"
    status, _, body = await answer(server, raw.encode())
    message = f"invalid_parameter: {what} must not contain the character U+0000"
    assert (status, loads(body)["error"]["message"]) == (400, message)


async def begin_upload(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str, headers: bytes
) -> None:
    """Send the head of a request, and wait until the server has it."""
    writer.write(b"POST %b HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n%b\r\n" % (path.encode(), headers))
    assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"


@pytest.mark.usefixtures("unused_line_rate")
@pytest.mark.parametrize("path", ["/bp/user/login", "/bp/ai/conversation", "/bp/ai/audio/tts"])
async def test_a_client_that_disconnects_during_its_parameters_is_counted_and_not_logged_as_a_crash(
    server: Server, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    _, token = await server.login()
    labels = {"method": "POST", "endpoint": path, "status": "499"}
    before = REGISTRY.get_sample_value("parley_requests_total", labels) or 0
    reported = asyncio.Event()

    def watch(_logger: object, _method: str, line: EventDict) -> EventDict:
        if line["event"] == "request":
            reported.set()
        return line

    with capture_logs(processors=[watch]) as lines:
        async with connection(server) as (reader, writer):
            headers = f"X-Service-Session-Token: {token}\r\nContent-Length: 99\r\n"
            await begin_upload(reader, writer, path, headers.encode())
            writer.write(b'{"strategies": [')
        async with asyncio.timeout(5):
            await reported.wait()
    # Lines that earlier tests have dropped are reported at any time.
    seen = [(line["event"], line.get("status")) for line in lines if line["event"] != "request.lines_dropped"]
    assert seen == [("request", 499)]
    assert REGISTRY.get_sample_value("parley_requests_total", labels) == before + 1
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


async def test_log_records_of_libraries_are_one_line_without_stack_and_exception_text() -> None:
    code = """
import logging
from app.observing import logs
logs.configure(level="info")
try:
    raise ValueError("st_secret of a client")
except ValueError:
    logging.getLogger("aiohttp.server").exception("Unhandled %s\\nsecond line", "x" * 300)
logging.getLogger("asyncio").warning("slow")
logging.getLogger("asyncio").warning("bad %d", "words")
logging.getLogger("asyncio").info("chatter")
"""
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdout=-1, stderr=-1)
    out, errors = await process.communicate()
    assert (process.returncode, errors) == (0, b"")
    first, *others = [loads(line) for line in out.splitlines()]
    assert first.pop("timestamp")
    assert first == {
        "event": "library",
        "level": "error",
        "logger": "aiohttp.server",
        "message": f"Unhandled {'x' * 190}",
        "exception": "ValueError",
    }
    assert [line["message"] for line in others] == ["slow", "bad %d"]


async def test_log_lines_that_cannot_be_written_are_dropped_and_use_no_cpu() -> None:
    code = """
import asyncio, sys, time
import structlog
from app.observing import logs

async def main():
    logs.configure(level="info")
    structlog.get_logger().info("said")
    began = time.process_time()
    await asyncio.sleep(0.5)
    print(time.process_time() - began, file=sys.stderr)

asyncio.run(main())
"""
    full = os.open("/dev/full", os.O_WRONLY)
    try:
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdout=full, stderr=-1)
        _, reported = await process.communicate()
    finally:
        os.close(full)
    assert float(reported.splitlines()[0]) < 0.2
