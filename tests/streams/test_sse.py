"""Event streams over real HTTP: what is written, and when a ping is sent."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass

import pytest

from streams.events import UserInput, encode
from streams.log import Following, Push, Ready
from tests.streams.sse_source import Source, connected, outcome, running
from tests.waiting import passes


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


@dataclass(frozen=True)
class Faulty:
    """Yields its frames, waits until the head is sent, and raises an error."""

    frames: bytes

    def follow(self, after: int, *, idle_s: float, push: Push | None = None) -> Following:
        return self._follow()

    async def _follow(self) -> AsyncGenerator[Ready]:
        if self.frames:
            yield Ready(1, self.frames, final=False)
        await passes()
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
