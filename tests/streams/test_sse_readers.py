"""Readers of an event stream over real HTTP that stop reading, read slowly, or disconnect."""

import asyncio

import pytest
from aiohttp import web

from streams.log import PIECE_BYTES, EventLog
from streams.sse import EventStream, ReaderGone
from tests.streams.sse_source import MANY, Source, connected, outcome, running
from tests.waiting import until


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
