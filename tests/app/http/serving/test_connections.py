"""Which connections a server admits, how long it keeps idle ones, and how it answers refused ones."""

import asyncio
import socket
import threading
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from urllib.parse import urlsplit

import pytest
from prometheus_client import REGISTRY
from structlog.testing import capture_logs

from app.settings import Settings
from streams.wire.codec import loads
from tests.running.servers import Server
from tests.waiting import passes, until

ASK = b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"
PIXEL = b"GET /bp/res/i.gif?e=a%40b.de&mid=x HTTP/1.1\r\nHost: a\r\n\r\n"
"""A request that is answered without the pipeline."""
HEAD_S = 10
LATER_S = 5
"""How late a connection may be closed: the server checks once a second, and the machine may be busy."""
KEEP_ALIVE_S = 2


@pytest.fixture
def settings(settings: Settings, request: pytest.FixtureRequest) -> Settings:
    """A test changes some by `@pytest.mark.parametrize("settings", [{...}], indirect=True)`."""
    return replace(settings, **getattr(request, "param", {}))


def changed(**fields: object) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("settings", [fields], indirect=True, ids=[""])


class Client:
    """A raw connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    def send(self, raw: bytes) -> None:
        self.writer.write(raw)

    async def answer(self) -> tuple[int, dict[str, str], bytes]:
        async with asyncio.timeout(10):
            head = await self.reader.readuntil(b"\r\n\r\n")
            status, *lines = head.decode().rstrip().split("\r\n")
            headers = dict(line.split(": ", 1) for line in lines)
            return int(status.split()[1]), headers, await self.reader.readexactly(int(headers["Content-Length"]))

    async def get_status(self) -> int:
        self.send(ASK)
        return (await self.answer())[0]

    async def rest(self, within_s: float) -> bytes:
        """Return what the server sends until it closes the connection."""
        async with asyncio.timeout(within_s):
            return await self.reader.read()


@asynccontextmanager
async def client(server: Server, **options: object) -> AsyncIterator[Client]:
    url = urlsplit(server.url)
    reader, writer = await asyncio.open_connection(url.hostname, url.port, **options)
    try:
        yield Client(reader, writer)
    finally:
        writer.close()


async def seconds_until_closed(client: Client) -> tuple[float, bytes]:
    clock = asyncio.get_running_loop().time
    began = clock()
    rest = await client.rest(HEAD_S + LATER_S)
    return clock() - began, rest


async def trickle(client: Client) -> None:
    client.send(b"GET /healthz HTTP/1.1\r\nX-Slow: ")
    while True:
        client.send(b"x")
        await asyncio.sleep(0.5)


async def test_a_head_that_is_incomplete_after_ten_seconds_closes_its_connection(server: Server) -> None:
    async with (
        client(server) as silent,
        client(server) as half,
        client(server) as slow,
        client(server) as second,
        client(server) as third,
        client(server) as kept,
        client(server) as uploading,
    ):
        half.send(ASK[:-2])
        assert await second.get_status() == 200
        second.send(ASK[:9])
        for one in (third, kept):
            one.send(PIXEL)
            assert (await one.answer())[0] == 200
        third.send(PIXEL[:9])
        uploading.send(b"POST /bp/user/login HTTP/1.1\r\nHost: a\r\nContent-Length: 20\r\n\r\n{")
        trickling = asyncio.create_task(trickle(slow))  # noqa: TID251
        ends = await asyncio.gather(*map(seconds_until_closed, (silent, half, slow, second, third)))
        trickling.cancel()
        assert await kept.get_status() == 200, "an answered request is followed by the time of an idle connection"
        uploading.send(b'"device":{"id":"d"}}'[:19])
        assert (await uploading.answer())[0] == 400, "a body has its own timeouts"
    assert all(HEAD_S - 1 < seconds < HEAD_S + LATER_S for seconds, _ in ends)
    (_, nothing), *others = ends
    assert nothing == b"", "no answer where nothing was asked"
    for _, raw in others:
        head, _, body = raw.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 408 ")
        assert loads(body)["error"]["error_type"] == "invalid_parameter"


LOGIN = b"POST /bp/user/login HTTP/1.1\r\nHost: a\r\n"
DEVICE = b'{"device":{"id":"d"}}'
WHOLE = {
    "without a body": ASK,
    "with a body": LOGIN + b"Content-Length: %d\r\n\r\n%b" % (len(DEVICE), DEVICE),
    "with a chunked body": LOGIN
    + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(DEVICE), DEVICE),
}


async def test_an_incomplete_head_after_a_request_times_out_after_ten_seconds_too(server: Server) -> None:
    """Bytes after a request in the same write are counted, however the request ends."""
    async with AsyncExitStack() as stack:
        halves = [await stack.enter_async_context(client(server)) for _ in range(2 * len(WHOLE))]
        kept = [await stack.enter_async_context(client(server)) for _ in range(2 * len(WHOLE))]
        for at, raw in enumerate(WHOLE.values()):
            halves[2 * at].send(raw + ASK[:-2])
            kept[2 * at].send(raw)
            for one, rest in ((halves[2 * at + 1], ASK[:-2]), (kept[2 * at + 1], b"")):
                one.send(raw[:-3])
                await passes()  # The server reads this part.
                one.send(raw[-3:] + rest)
        for one in halves + kept:
            assert (await one.answer())[0] == 200
        for _, raw in await asyncio.gather(*map(seconds_until_closed, halves)):
            assert raw.startswith(b"HTTP/1.1 408 ")
        for one in kept:
            assert await one.get_status() == 200


@changed(keep_alive_s=KEEP_ALIVE_S)
async def test_an_idle_connection_is_closed_and_one_in_use_is_not(server: Server) -> None:
    async with client(server) as idle, client(server) as used:
        assert await idle.get_status() == 200
        clock = asyncio.get_running_loop().time
        began = clock()
        for _ in range(4):
            assert await used.get_status() == 200
            await asyncio.sleep(KEEP_ALIVE_S / 4)  # The other connection is idle all the time.
        assert await idle.rest(KEEP_ALIVE_S + LATER_S) == b""
        assert clock() - began > KEEP_ALIVE_S - 0.25
        assert await used.get_status() == 200


@changed(keep_alive_s=KEEP_ALIVE_S)
async def test_direct_answers_keep_their_connection_too(server: Server) -> None:
    async with client(server) as idle, client(server) as used:
        for one in (idle, used):
            assert await one.get_status() == 200
        for _ in range(6):
            await asyncio.sleep(KEEP_ALIVE_S / 4)
            used.send(PIXEL)
            assert (await used.answer())[0] == 200
        assert await idle.rest(LATER_S) == b""
        assert await used.rest(KEEP_ALIVE_S + LATER_S) == b""


@pytest.mark.soak
@pytest.mark.timeout(150)
async def test_an_idle_connection_is_kept_for_75_seconds(server: Server) -> None:
    async with client(server) as idle:
        assert await idle.get_status() == 200
        began = asyncio.get_running_loop().time()
        assert await idle.rest(90) == b""
        assert 74 < asyncio.get_running_loop().time() - began < 80


@changed(keep_alive_s=KEEP_ALIVE_S)
async def test_a_request_that_arrives_as_its_connection_expires_is_answered(server: Server) -> None:
    async with client(server) as idle:
        assert await idle.get_status() == 200
        await asyncio.sleep(KEEP_ALIVE_S - 0.7)  # Most of its time has passed.
        idle.writer.get_extra_info("socket").setblocking(False)
        idle.send(ASK)
        threading.Event().wait(1.4)  # The loop is busy while the time expires.
        assert (await idle.answer())[0] == 200


@changed(connections=3)
async def test_connections_over_the_limit_of_the_process_get_an_error(server: Server) -> None:
    before = REGISTRY.get_sample_value("parley_connections_refused_total", {"bound": "process"}) or 0
    async with client(server) as first, client(server) as second, client(server) as third:
        for connection in (first, second, third):
            assert await connection.get_status() == 200
        assert REGISTRY.get_sample_value("parley_connections") == 3
        async with client(server) as fourth:
            upload = (
                b"POST /bp/user/login HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n" + b"x" * 1_000_000
            )
            fourth.send(upload)
            status, headers, body = await fourth.answer()
            assert await fourth.rest(5) == b""
        assert status == 503
        assert (headers["Connection"], headers["Retry-After"]) == ("close", "1")
        assert headers["X-Request-Id"]
        assert headers["Cache-Control"] == "no-store"
        error = loads(body)["error"]
        assert (error["error_type"], error["extra"]) == ("backend unavailable", {"retryable": True})
        async with server.http.get(f"{server.url}/healthz") as refused:  # What an ordinary client receives.
            assert refused.status == 503
        assert REGISTRY.get_sample_value("parley_connections_refused_total", {"bound": "process"}) == before + 2
        first.writer.close()
        await open_are(2)
        async with client(server) as fifth:
            assert await fifth.get_status() == 200


async def open_are(count: int) -> None:
    await until(lambda: (REGISTRY.get_sample_value("parley_connections") or 0) == count)


@changed(connections=1)
async def test_a_refused_client_that_sends_nothing_gets_the_error_and_is_closed_too(server: Server) -> None:
    async with client(server) as only, client(server) as silent:
        assert await only.get_status() == 200
        assert (await silent.answer())[0] == 503
        assert await silent.rest(5) == b""


@changed(connections=1)
async def test_refusals_leave_one_log_line_a_second_with_their_count(server: Server) -> None:
    count = 40
    clock = asyncio.get_running_loop().time
    with capture_logs() as lines:
        async with client(server) as only:
            assert await only.get_status() == 200
            began = clock()
            for _ in range(count):
                async with client(server) as refused:
                    assert await refused.get_status() == 503
            await until(lambda: sum(line["count"] for line in of_refusals(lines)) >= count)
            seconds = clock() - began
    reported = of_refusals(lines)
    assert len(reported) <= seconds + 1
    assert reported[0]["by_bound"].keys() == {"process"}
    assert (reported[0]["open"], reported[0]["connections"], reported[0]["last_address"]) == (1, 1, "127.0.0.1")


def of_refusals(lines: list) -> list:
    return [line for line in lines if line["event"] == "connections.refused"]


@changed(connections_per_address=2)
async def test_connections_of_one_address_are_bounded_and_others_are_not_affected(server: Server) -> None:
    before = REGISTRY.get_sample_value("parley_connections_refused_total", {"bound": "address"}) or 0
    async with client(server) as first, client(server) as second, client(server) as third:
        assert [await first.get_status(), await second.get_status()] == [200, 200]
        third.send(ASK)
        status, headers, body = await third.answer()
        assert (status, headers["Connection"], headers["Retry-After"]) == (429, "close", "1")
        assert loads(body)["error"]["error_type"] == "api_rate_limit"
        async with client(server, local_addr=("127.0.0.2", 0)) as elsewhere:
            assert await elsewhere.get_status() == 200
        first.writer.close()
        await open_are(1)
        async with client(server) as next_one:
            assert await next_one.get_status() == 200
    assert REGISTRY.get_sample_value("parley_connections_refused_total", {"bound": "address"}) == before + 1


@changed(connections_per_address=2, trusted_proxies=("127.0.0.0/30",))
async def test_a_trusted_proxy_may_open_any_number_of_connections(server: Server) -> None:
    async with client(server) as first, client(server) as second, client(server) as third:
        assert [await connection.get_status() for connection in (first, second, third)] == [200] * 3


@pytest.mark.soak
@pytest.mark.timeout(120)
async def test_the_connection_of_a_client_that_does_not_read_a_large_response_is_closed(server: Server) -> None:
    await open_are(0)
    url = urlsplit(server.url)
    with socket.socket() as small:
        small.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        small.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(small, (url.hostname, url.port))
        ask = b"GET /docs/scalar.js HTTP/1.1\r\nHost: a\r\n\r\n"
        await loop.sock_sendall(small, ask * 20)  # The kernel buffers some megabytes.
        await open_are(1)
        await until(lambda: REGISTRY.get_sample_value("parley_connections") == 0, within_s=90, every_s=0.2)
