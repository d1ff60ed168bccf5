"""How the HTTP client sends complete and streamed bodies while it reads the response."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest

from streams.tasks import background
from tests.vendors.http.http1.peers import CHUNKED, WHOLE, ask, body, gone, played, request, requested
from tests.waiting import passes
from vendors.http.http1.client import Http1Client


async def test_body_is_sent_while_its_answer_is_read(http1: Http1Client):
    heard: asyncio.Queue[bytes] = asyncio.Queue(1)

    async def speech() -> AsyncIterator[bytes]:
        for number in range(5):
            yield b""
            yield b"piece %d" % number
            assert await heard.get() == b"piece %d" % number

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        assert b"\r\nTransfer-Encoding: chunked\r\n" in head
        writer.write(CHUNKED)
        while size := int(await reader.readline(), 16):
            piece = await reader.readexactly(size + 2)
            writer.write(b"%x\r\n%b" % (size, piece))
        await reader.readline()
        writer.write(b"0\r\n\r\n")
        await request(reader)
        writer.write(WHOLE)

    async with played(echo) as url:
        async with requested(http1, url, body=speech(), repeatable=False) as answer:
            reported = []
            while piece := await answer.read():
                reported.append(piece)
                heard.put_nowait(piece)
        assert reported == [b"piece %d" % number for number in range(5)]
        assert await ask(http1, url) == b"ok", "the connection is kept"


@pytest.mark.parametrize("answered", [False, True])
async def test_errors_of_the_body_reach_the_reader(http1: Http1Client, answered: bool):
    left, may_break = asyncio.Event(), asyncio.Event()

    async def broken() -> AsyncIterator[bytes]:
        yield b"part"
        await may_break.wait()
        raise LookupError("no more")

    async def listening(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"part\r\n")
        if answered:
            writer.write(CHUNKED)
        may_break.set()
        await gone(reader)
        left.set()

    async with played(listening) as url:
        with pytest.raises(LookupError, match="no more"):
            await ask(http1, url, body=broken())
        async with asyncio.timeout(5):
            await left.wait()


async def test_answer_before_the_end_of_the_body_ends_the_sending_and_the_connection(http1: Http1Client):
    ended = asyncio.Event()
    connections = 0

    async def endless() -> AsyncIterator[bytes]:
        try:
            while True:
                yield bytes(65_536)
        finally:
            ended.set()

    async def refusing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        if connections == 1:
            await reader.readexactly(100_000)
            writer.write(WHOLE.replace(b"200 OK", b"413 Too much"))
        else:
            await request(reader)
            writer.write(WHOLE)
        await gone(reader)

    async with played(refusing) as url:
        source = endless()
        async with requested(http1, url, body=source) as answer:
            assert (answer.status, await body(answer)) == (413, b"ok")
        await source.aclose()
        async with asyncio.timeout(5):
            assert await ask(http1, url) == b"ok"
    assert ended.is_set()
    assert connections == 2


async def test_cancelling_a_call_does_not_wait_for_a_vendor_that_does_not_read(http1: Http1Client):
    reached, may_read, left = asyncio.Event(), asyncio.Event(), asyncio.Event()
    read = 0

    async def stuck(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal read
        await reader.readuntil(b"\r\n\r\n")
        reached.set()
        await may_read.wait()
        with suppress(ConnectionError):
            while piece := await reader.read(1 << 16):
                read += len(piece)
        left.set()

    async with played(stuck) as url:
        async with background(ask(http1, url, body=bytes(64 << 20))) as asking:
            await reached.wait()
            await passes(1_000)  # Until the buffers of the sockets are full.
            assert not asking.done()
        may_read.set()
        async with asyncio.timeout(5):
            await left.wait()
    assert read < 32 << 20


async def test_a_large_body_is_sent_completely_to_a_slow_vendor(http1: Http1Client):
    large = os.urandom(5 << 20)
    got = bytearray()

    async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        while len(got) < len(large):
            got.extend(await reader.read(100_000))
            await asyncio.sleep(0)
        writer.write(WHOLE)
        await request(reader)
        writer.write(WHOLE)

    async with played(slow) as url:
        assert await ask(http1, url, body=large) == b"ok"
        assert await ask(http1, url) == b"ok"

    assert got == large
