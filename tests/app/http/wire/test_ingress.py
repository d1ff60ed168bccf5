"""Reads that are parsed slice by slice give the same requests and bodies, in order, however they are split."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from itertools import repeat
from typing import Any, cast
from urllib.parse import urlsplit

import pytest
from aiohttp import web
from hypothesis import example, given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from app.http.serving.server import runner_of
from app.http.wire.ingress import DENSE_SHARE, SLICE_BYTES, SLICE_LINES, ParsingTurns, SlicedConnection
from streams.tasks import background
from tests.running.servers import Server
from tests.streams.pieces import split
from tests.waiting import until

Request = tuple[str, bytes]
"""Path and body."""
LONG = bytes(range(256)) * (3 * SLICE_BYTES // 256)


@dataclass(frozen=True)
class Sent:
    """A request. Its body is sent in chunks of `sizes`, which repeat, or if there are none with its length."""

    body: bytes
    sizes: tuple[int, ...] = ()
    headers: int = 0
    extension: bytes = b""
    upgrade: bool = False

    def raw(self, path: str) -> bytes:
        lines = [f"POST {path} HTTP/1.1", "Host: parley", *(f"X-{at}: {at}" for at in range(self.headers))]
        if self.upgrade:
            lines += ["Connection: Upgrade", "Upgrade: websocket"]
        lines.append("Transfer-Encoding: chunked" if self.sizes else f"Content-Length: {len(self.body)}")
        return "\r\n".join([*lines, "", ""]).encode() + (b"".join(self._chunks()) if self.sizes else self.body)

    def _chunks(self) -> Iterable[bytes]:
        at = number = 0
        while at < len(self.body):
            piece = self.body[at : at + self.sizes[number % len(self.sizes)]]
            yield b"%x%b\r\n%b\r\n" % (len(piece), self.extension, piece)
            at, number = at + len(piece), number + 1
        yield b"0\r\n\r\n"


class FakeTransport(asyncio.Transport):
    """A transport that the test controls."""

    def __init__(self) -> None:
        super().__init__()
        self.paused = False
        self.closed = False
        self.lost = False
        """Whether the test has already told the protocol that the connection is lost."""

    def pause_reading(self) -> None:
        self.paused = True

    def resume_reading(self) -> None:
        self.paused = False

    def write(self, data: bytes) -> None:
        pass

    def writelines(self, list_of_data: Iterable[bytes]) -> None:
        pass

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True


@asynccontextmanager
async def connected(seen: list[Request]) -> AsyncIterator[tuple[asyncio.Protocol, FakeTransport]]:
    """Connect to a server that records its requests in `seen`."""

    async def record(request: web.Request) -> web.Response:
        body = b"".join([piece async for piece in request.content.iter_any()])
        seen.append((request.path, body))
        return web.Response()

    application = web.Application()
    application.router.add_post("/{number}", record)
    runner = runner_of(application, shutdown_timeout_s=1)
    await runner.setup()
    assert runner.server is not None
    protocol, transport = runner.server(), FakeTransport()
    protocol.connection_made(transport)
    try:
        yield protocol, transport
    finally:
        if not transport.lost:
            protocol.connection_lost(None)
        await runner.cleanup()


async def received(pieces: Iterable[bytes], count: int) -> list[Request]:
    """Return the requests that the server parses from these reads. While it pauses its transport, it gets none."""
    seen: list[Request] = []
    async with asyncio.timeout(20), connected(seen) as (protocol, transport):
        for piece in filter(None, pieces):
            while transport.paused:  # noqa: ASYNC110 - the transport has no event for it
                await asyncio.sleep(0)
            protocol.data_received(piece)
        while len(seen) < count or transport.paused:  # noqa: ASYNC110
            await asyncio.sleep(0)
        assert not transport.closed
    return seen


SENT = st.builds(
    Sent,
    st.binary(max_size=400) | st.integers(0, len(LONG)).map(lambda size: LONG[:size]),
    st.lists(st.integers(1, 20) | st.sampled_from([600, 20_000]), max_size=3).map(tuple),
    headers=st.sampled_from([0, 5, 2 * SLICE_LINES - 10]),
    extension=st.sampled_from([b"", b";x=y"]),
    upgrade=st.booleans(),
)


@settings(max_examples=settings.default.max_examples // 4)  # Each takes 0.3 s.
@given(st.lists(SENT, min_size=1, max_size=5), st.lists(st.integers(0, 200_000), max_size=6))
@example([Sent(LONG, (1,))], [])
@example([Sent(b"ab", (1,))] * 120, [])
@example([Sent(LONG, (1,), upgrade=True), Sent(LONG, (1, 700), upgrade=True), Sent(b"", ())], [])
def test_every_split_of_the_same_bytes_gives_the_same_requests(sent: list[Sent], cuts: list[int]) -> None:
    raw = b"".join(one.raw(f"/{number}") for number, one in enumerate(sent))
    expected = [(f"/{number}", one.body) for number, one in enumerate(sent)]

    assert asyncio.run(received([raw], len(sent))) == expected
    assert asyncio.run(received(split(raw, cuts), len(sent))) == expected


def test_pipelined_requests_are_parsed_after_requests_that_began_before_their_body_ended() -> None:
    count, sent = 40, Sent(b"ab")

    async def send() -> list[Request]:
        seen: list[Request] = []
        async with connected(seen) as (protocol, _):
            connection = cast(SlicedConnection, protocol)
            for number in range(count):
                raw = sent.raw(f"/{number}")
                end = raw[-1:]
                connection.data_received(raw[:-1])
                await until(lambda: connection.current_request, every_s=0)
                if number == count - 1:
                    end += b"".join(sent.raw(f"/{later}") for later in range(count, 3 * count))
                connection.data_received(end)
                await until(lambda number=number: len(seen) > number, every_s=0)
            await until(lambda: len(seen) == 3 * count, within_s=5)
        return seen

    assert asyncio.run(send()) == [(f"/{number}", b"ab") for number in range(3 * count)]


class InterruptedConnection:
    """A connection whose first slice takes half a second, as if garbage was collected meanwhile."""

    recent_slices = 0.0

    def __init__(self) -> None:
        self.slices: list[float] = []
        """When each slice was parsed."""

    def decay_recent_slices(self, now: float) -> None:
        pass

    def parse_slice(self) -> bool:
        began = time.monotonic()
        while not self.slices and time.monotonic() < began + 0.5:
            pass
        self.slices.append(time.monotonic())
        return len(self.slices) < 40


def test_an_interrupted_turn_delays_the_next_ones_for_a_moment_only() -> None:
    async def parse() -> list[float]:
        connection = InterruptedConnection()
        turns = ParsingTurns(asyncio.get_running_loop(), share=DENSE_SHARE)
        turns.add(cast(SlicedConnection, connection))
        async with asyncio.timeout(20):
            while len(connection.slices) < 40:  # noqa: ASYNC110
                await asyncio.sleep(0)
        return connection.slices

    first, *_, last = asyncio.run(parse())
    assert last - first < 1.5  # It would be 3.3 s if all of the half second counted.


def test_a_connection_that_is_never_paused_loses_nothing() -> None:
    sent = Sent(LONG, (1,))
    raw = sent.raw("/0") + sent.raw("/1")

    async def read() -> list[Request]:
        seen: list[Request] = []
        async with asyncio.timeout(20), connected(seen) as (protocol, _):
            for piece in split(raw, range(0, len(raw), 1000)):
                protocol.data_received(piece)
            while len(seen) < 2:  # noqa: ASYNC110
                await asyncio.sleep(0)
        return seen

    assert asyncio.run(read()) == [("/0", LONG), ("/1", LONG)]


def test_a_lost_connection_discards_its_held_bytes() -> None:
    async def read() -> list[Request]:
        seen: list[Request] = []
        async with connected(seen) as (protocol, transport):
            protocol.data_received(Sent(LONG, (1,)).raw("/0"))
            assert transport.paused
            await asyncio.sleep(0)
            transport.lost = True
            protocol.connection_lost(ConnectionResetError())
            await asyncio.sleep(0.05)
        return seen

    assert asyncio.run(read()) == []


MIB = 1024 * 1024
READ_BYTES = 256 * 1024
"""The size of a full read."""
SMALL_BYTES = 2 * SLICE_BYTES - 1024
"""The size of a read that has two slices."""
OTHERS = 40


@asynccontextmanager
async def uploads(received: Counter[str]) -> AsyncIterator[Callable[..., Any]]:
    """Yield a coroutine function that uploads to a path: `reads` reads of `size_bytes`, or endlessly if None.

    The server adds the size of each piece of a body to the count of its path.
    """

    async def note(request: web.Request) -> web.Response:
        async for piece in request.content.iter_any():
            received[request.path] += len(piece)
        return web.Response()

    application = web.Application()
    application.router.add_post("/{name}", note)
    runner = runner_of(application, shutdown_timeout_s=1)
    await runner.setup()
    server = runner.server
    assert server is not None

    async def upload(path: str, reads: int | None, size_bytes: int = READ_BYTES) -> None:
        protocol, transport = server(), FakeTransport()
        protocol.connection_made(transport)
        read = b"%x\r\n%b\r\n" % (size_bytes, b"A" * size_bytes)
        try:
            protocol.data_received(Sent(b"", (1,)).raw(path).removesuffix(b"0\r\n\r\n"))
            for _ in repeat(None) if reads is None else range(reads):
                protocol.data_received(read)
                while transport.paused:  # noqa: ASYNC110 - the transport has no event for it
                    await asyncio.sleep(0)
        finally:
            protocol.connection_lost(None)

    try:
        yield upload
    finally:
        await runner.cleanup()


async def test_endless_uploads_hardly_delay_an_upload_of_ordinary_size() -> None:
    received: Counter[str] = Counter()
    async with asyncio.timeout(60), AsyncExitStack() as stack:
        upload = await stack.enter_async_context(uploads(received))
        for _ in range(OTHERS):
            await stack.enter_async_context(background(upload("/endless", None)))
        while received["/endless"] < OTHERS * 4 * MIB:  # noqa: ASYNC110
            await asyncio.sleep(0)
        before = received["/endless"]
        await upload("/ordinary", 2 * MIB // READ_BYTES)
        meanwhile = received["/endless"] - before
    assert received["/ordinary"] > 2 * MIB - READ_BYTES
    assert meanwhile < OTHERS * MIB / 2, "an equal share for each would be 2 MiB"


async def test_new_uploads_do_not_stop_an_old_one() -> None:
    received: Counter[str] = Counter()
    async with asyncio.timeout(60), AsyncExitStack() as stack:
        upload = await stack.enter_async_context(uploads(received))

        async def renew() -> None:
            while True:
                await upload("/new", 1, SMALL_BYTES)

        await stack.enter_async_context(background(upload("/old", None)))
        while received["/old"] < 4 * MIB:  # noqa: ASYNC110
            await asyncio.sleep(0)
        for _ in range(OTHERS):
            await stack.enter_async_context(background(renew()))
        while not received["/new"]:  # noqa: ASYNC110
            await asyncio.sleep(0)
        before = Counter(received)
        while received["/old"] < before["/old"] + MIB / 16:  # noqa: ASYNC110
            await asyncio.sleep(0)
        meanwhile = received["/new"] - before["/new"]
    assert meanwhile < 6 * OTHERS * MIB / 16, "with equal shares, each would upload as much as the old one"


async def exchange(server: Server, raw: bytes) -> bytes:
    """Return everything that the server sends in response to `raw` until it closes the connection."""
    url = urlsplit(server.url)
    reader, writer = await asyncio.open_connection(url.hostname, url.port)
    try:
        writer.write(raw)
        async with asyncio.timeout(20):
            return await reader.read()
    finally:
        writer.close()


@pytest.mark.parametrize("size", [1, 2_000])
async def test_the_end_of_a_connection_is_noticed_after_the_held_bytes(server: Server, size: int) -> None:
    body = b'{"device":{"id":"%b"}}' % (b"x" * 60) + b" " * 60_000
    url = urlsplit(server.url)
    with capture_logs() as lines:

        def requests() -> list:
            # Lines that earlier tests have dropped are reported once a second, at any time.
            events = [line for line in lines if line["event"].startswith("request")]
            return [line for line in events if line["event"] != "request.lines_dropped"]

        reader, writer = await asyncio.open_connection(url.hostname, url.port)
        writer.write(Sent(body, (size,)).raw("/bp/user/login"))
        writer.write_eof()
        async with asyncio.timeout(20):
            await reader.read()
        await until(requests)
        writer.close()
    assert [(line["event"], line.get("status")) for line in requests()] == [("request", 200)], requests()


async def test_pipelined_requests_of_one_read_are_answered_in_order(server: Server) -> None:
    ids = [f"request-{number:04}" for number in range(300)]
    raw = "".join(f"GET /healthz HTTP/1.1\r\nHost: a\r\nX-Request-Id: {one}\r\n\r\n" for one in ids).encode()
    url = urlsplit(server.url)
    reader, writer = await asyncio.open_connection(url.hostname, url.port)
    writer.write(raw)
    async with asyncio.timeout(20):
        for one in ids:
            head = await reader.readuntil(b"\r\n\r\n")
            assert f"X-Request-Id: {one}\r\n".encode() in head
            await reader.readuntil(b"}")
    writer.close()


async def test_a_body_that_breaks_in_the_middle_of_a_read_is_refused(server: Server) -> None:
    raw = Sent(b" " * 5_000, (1,)).raw("/bp/user/login").replace(b"0\r\n\r\n", b"zz\r\n" * 20_000)
    answered = await exchange(server, raw)
    assert answered.startswith(b"HTTP/1.1 400 Bad Request\r\n"), answered[:300]
    assert answered.count(b"HTTP/1.1") == 1
