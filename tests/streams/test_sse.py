"""Event streams over real HTTP: what is written, when a ping is sent, and when a slow reader is cut."""

import asyncio
import socket
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from aiohttp import ClientSession, web

from streams.events import UserInput, encode
from streams.log import PIECE_BYTES, EventLog, Followable, Following, Push, Ready
from streams.sse import EventStream, ReaderGone
from tests.waiting import until

MANY = 1 << 30


@dataclass
class Source:
    """Serves one log at `/`, and records the outcome for each reader."""

    log: EventLog = field(default_factory=lambda: EventLog(keep_bytes=MANY, lag_bytes=MANY))
    followed: Followable | None = None
    """The follower to send instead of the log."""
    send_timeout_s: float = 5
    ping_after_s: float = 5
    port: int = 0
    outcomes: asyncio.Queue[str] = field(default_factory=asyncio.Queue)
    peers: list[tuple[str, int]] = field(default_factory=list)
    transports: list[asyncio.Transport] = field(default_factory=list)

    async def say(self, text: str) -> None:
        await self.log.append(encode(UserInput(text), self.log.last_id + 1, 1))

    def end(self) -> None:
        self.log.finish(encode(UserInput("end"), self.log.last_id + 1, 1))

    async def answer(self, request: web.Request) -> web.StreamResponse:
        response = EventStream(
            {"X-Service-Stream-Id": "s1"}, send_timeout_s=self.send_timeout_s, ping_after_s=self.ping_after_s
        )
        self.peers.append(request.transport.get_extra_info("peername"))
        self.transports.append(request.transport)
        try:
            await response.prepare(request)
            await response.send_all(self.followed or self.log, int(request.query.get("after", "0")))
        except ReaderGone:
            self.outcomes.put_nowait("gone")
        else:
            self.outcomes.put_nowait("sent")
        return response

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"


@asynccontextmanager
async def running(source: Source) -> AsyncIterator[ClientSession]:
    app = web.Application()
    app.router.add_route("*", "/", source.answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    source.port = runner.addresses[0][1]
    try:
        async with ClientSession() as http:
            yield http
    finally:
        await runner.cleanup()


@asynccontextmanager
async def connected(
    source: Source, head: bytes = b"", *, receive_bytes: int = 4096
) -> AsyncIterator[socket.socket]:
    """Yield a client that receives almost nothing unless the test reads from it."""
    loop = asyncio.get_running_loop()
    with socket.socket() as client:
        client.setblocking(False)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        await loop.sock_connect(client, ("127.0.0.1", source.port))
        await loop.sock_sendall(client, b"GET / HTTP/1.1\r\nHost: a\r\n%b\r\n" % head)
        yield client


async def outcome(source: Source) -> str:
    async with asyncio.timeout(5):
        return await source.outcomes.get()


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_all_events_are_sent_and_the_response_ends(method: str):
    source = Source()
    async with running(source) as http, http.request(method, source.url) as answer:
        await source.say("a")
        await source.say("b")
        source.end()
        body = await answer.read()

        assert body == b"".join(
            b'id: %d\nevent: user_input\ndata: {"content":"%b","timestamp":1}\n\n' % event
            for event in ((1, b"a"), (2, b"b"), (3, b"end"))
        )
        assert await outcome(source) == "sent"


async def test_headers_tell_proxies_not_to_buffer_the_stream():
    source = Source()
    source.end()
    async with running(source) as http, http.get(source.url) as answer:
        assert answer.status == 200
        assert answer.headers["Content-Type"] == "text/event-stream"
        assert answer.headers["Cache-Control"] == "no-store"
        assert answer.headers["X-Accel-Buffering"] == "no"
        assert answer.headers["X-Service-Stream-Id"] == "s1"
        assert answer.headers["Transfer-Encoding"] == "chunked"
        assert not {"Content-Length", "Content-Encoding", "Connection"} & set(answer.headers)
        await answer.read()


async def test_headers_are_sent_before_the_first_event():
    source = Source()
    async with running(source) as http, asyncio.timeout(5), http.get(source.url):
        assert source.log.last_id == 0
        source.end()


async def test_headers_are_sent_together_with_immediate_events():
    source = Source()
    await source.say("a")
    async with running(source), connected(source) as client, asyncio.timeout(5):
        first = await asyncio.get_running_loop().sock_recv(client, 4096)
        source.end()

    head, _, body = first.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"id: 1\nevent: user_input" in body


async def test_connections_are_reused_after_a_complete_stream():
    source = Source()
    source.end()
    async with running(source) as http:
        for _ in range(3):
            async with http.get(source.url) as answer:
                await answer.read()

    assert len(set(source.peers)) == 1
    assert len(source.peers) == 3


@pytest.mark.parametrize("wish", ["", "Connection: keep-alive\r\n"])
async def test_client_of_http_1_0_gets_events_without_chunks_until_the_connection_ends(wish: str):
    source = Source()
    async with running(source):
        reader, writer = await asyncio.open_connection("127.0.0.1", source.port)
        writer.write(f"GET / HTTP/1.0\r\nHost: a\r\n{wish}\r\n".encode())
        source.end()
        async with asyncio.timeout(5):
            head, _, body = (await reader.read()).partition(b"\r\n\r\n")
        writer.close()
        await writer.wait_closed()

    assert b" 200 " in head
    assert b"chunked" not in head.lower()
    assert body == b'id: 1\nevent: user_input\ndata: {"content":"end","timestamp":1}\n\n'


async def test_all_ready_events_are_sent_in_one_write():
    source = Source()
    for text in "abcdef":
        await source.say(text)
    source.end()
    async with running(source) as http, http.get(source.url, params={"after": "2"}) as answer:
        chunks = []
        chunk = b""
        async for piece, chunk_ends in answer.content.iter_chunks():
            chunk += piece
            if chunk_ends:
                chunks.append(chunk)
                chunk = b""

    assert [[line for line in chunk.split(b"\n") if line.startswith(b"id:")] for chunk in chunks] == [
        [b"id: 3", b"id: 4", b"id: 5", b"id: 6", b"id: 7"]
    ]


async def test_pings_without_an_id_are_sent_during_silence():
    source = Source(ping_after_s=0.03)
    async with running(source) as http, http.get(source.url) as answer:
        await source.say("a")
        lines = []
        while lines.count(b"event: ping\n") < 2:
            lines.append(await answer.content.readline())
        source.end()
        rest = await answer.read()

    assert [line for line in lines if line.startswith(b"id:")] == [b"id: 1\n"]
    assert b"id: 2\nevent: user_input" in rest


async def test_no_ping_is_sent_while_events_are_sent():
    source = Source(ping_after_s=0.5)
    async with running(source) as http, http.get(source.url) as answer:
        for _ in range(10):
            await source.say("a")
            await asyncio.sleep(0.1)  # Together, they take longer than the timeout.
        source.end()
        body = await answer.read()

    assert b"ping" not in body
    assert body.count(b"id: ") == 11


async def test_reader_that_stops_reading_is_cut_after_the_send_timeout():
    source = Source(send_timeout_s=0.3)
    loop = asyncio.get_running_loop()
    async with running(source), connected(source) as client:
        await asyncio.sleep(0.03)  # The timeout starts at the write.
        begun = loop.time()
        await source.say("x" * 20_000_000)

        assert await outcome(source) == "gone"

        assert 0.29 < loop.time() - begun < 2
        received = 0
        while piece := await loop.sock_recv(client, 1 << 20):
            received += len(piece)
        assert received < 20_000_000


@pytest.mark.parametrize(("frames", "size"), [(1, 5_000_000), (40_000, 100), (80, 60_000)])
async def test_reader_that_stops_reading_leaves_one_piece_in_the_transport_and_is_cut(frames: int, size: int):
    source = Source(send_timeout_s=1)
    for _ in range(frames):
        await source.say("x" * size)
    source.end()
    async with running(source), connected(source):
        await until(lambda: source.transports and source.transports[0].get_write_buffer_size())
        begun = asyncio.get_running_loop().time()
        assert source.transports[0].get_write_buffer_size() <= PIECE_BYTES + 1024

        assert await outcome(source) == "gone"

        assert asyncio.get_running_loop().time() - begun > 0.5


async def test_large_frame_and_its_neighbours_arrive_complete():
    source = Source()
    texts = ["a" * 200_000, "b", "c" * 70_000, *("d" * 1_000 for _ in range(300)), "e" * 1_000_000]
    for text in texts:
        await source.say(text)
    source.end()
    async with running(source) as http, http.get(source.url) as answer:
        body = await answer.read()

    expected = [encode(UserInput(text), number, 1) for number, text in enumerate([*texts, "end"], 1)]
    assert body == b"".join(expected)


async def test_a_reader_that_continues_in_time_is_not_cut():
    source = Source(send_timeout_s=0.8)
    loop = asyncio.get_running_loop()
    async with running(source), connected(source, b"Connection: close\r\n", receive_bytes=65_536) as client:
        for number in range(4):
            await source.say("x" * 3_000_000)
            await asyncio.sleep(0.3)  # Each write is within the timeout, but all of them together are not.
            seen = 0
            while seen < 3_000_000 - 100:
                piece = await loop.sock_recv(client, 1 << 20)
                assert piece, "the reader was cut"
                seen += len(piece)
            assert source.outcomes.empty(), number
        source.end()
        while await loop.sock_recv(client, 1 << 20):
            pass

        assert await outcome(source) == "sent"


async def test_idle_stream_is_not_cut_by_the_send_timeout():
    source = Source(send_timeout_s=0.05)
    async with running(source) as http, http.get(source.url) as answer:
        await asyncio.sleep(0.2)  # Several times the timeout.
        source.end()

        assert b"id: 1" in await answer.read()
    assert await outcome(source) == "sent"


async def test_disconnected_reader_is_noticed_at_the_next_ping():
    source = Source(ping_after_s=0.02)
    async with running(source) as http:
        answer = await http.get(source.url)
        answer.close()

        assert await outcome(source) == "gone"


async def test_reader_that_disconnects_does_not_affect_another():
    source = Source()
    async with running(source) as http, http.get(source.url) as staying:
        leaving = await http.get(source.url)
        await source.say("a")
        leaving.close()
        while source.outcomes.empty():
            await source.say("b")
            await asyncio.sleep(0)
        source.end()
        body = await staying.read()

        assert body.count(b"id: ") == source.log.last_id
        assert [await outcome(source), await outcome(source)] == ["gone", "sent"]


async def test_reader_that_disconnects_before_the_headers_is_released():
    log = EventLog(keep_bytes=MANY, lag_bytes=MANY)
    seen: asyncio.Queue[str] = asyncio.Queue()
    begun = asyncio.Event()

    async def late(request: web.Request) -> web.StreamResponse:
        begun.set()
        while request.transport is not None:  # noqa: ASYNC110 - aiohttp reports it in no other way
            await asyncio.sleep(0)
        response = EventStream({}, send_timeout_s=5, ping_after_s=5)
        try:
            await response.prepare(request)
            await response.send_all(log, 0)
        except ReaderGone:
            seen.put_nowait("gone")
        return response

    source = Source()
    source.answer = late  # type: ignore[method-assign]
    async with running(source):
        async with connected(source):
            await begun.wait()
        async with asyncio.timeout(5):
            assert await seen.get() == "gone"


@dataclass(frozen=True)
class Faulty:
    """Yields its frames, waits until the head is sent, and raises an error."""

    frames: bytes

    def follow(self, after: int, *, idle_s: float, push: Push | None = None) -> Following:
        return self._follow()

    async def _follow(self) -> AsyncGenerator[Ready]:
        if self.frames:
            yield Ready(1, self.frames, final=False)
        await asyncio.sleep(0.03)
        raise RuntimeError("it broke")


@pytest.mark.parametrize("frames", [b"", b"id: 1\n\n"])
async def test_response_that_fails_after_its_headers_is_cut_without_further_bytes(frames: bytes):
    source = Source(followed=Faulty(frames))
    async with running(source):
        reader, writer = await asyncio.open_connection("127.0.0.1", source.port)
        try:
            writer.write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            async with asyncio.timeout(5):
                head, _, body = (await reader.read()).partition(b"\r\n\r\n")
        finally:
            writer.close()

    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert body == (b"%x\r\n%b\r\n" % (len(frames), frames) if frames else b"")
