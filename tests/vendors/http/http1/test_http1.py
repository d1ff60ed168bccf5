"""The HTTP client at a real socket: reuse, backpressure and closing of connections."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp
import pytest

from tests.vendors.http.http1.peers import CHUNKED, WHOLE, Vendor, ask, body, gone, played, request, requested
from vendors.http.http1.client import Http1Client, open_http1
from vendors.http.http1.errors import BrokenResponse
from vendors.http.http1.request import parse_url
from vendors.http.http1.response import MAX_UNREAD_BYTES

ONE_READ_BYTES = 256 * 1024


async def test_requests_are_sent_unchanged(http1: Http1Client):
    vendor = Vendor(WHOLE)
    async with played(vendor) as url:
        await ask(http1, f"{url}a b/ü?q=1&r=%20", headers={"X-A": "1", "accept": "text/plain"}, body=b"12345")
        await ask(http1, url.replace("//", "//me:se%40cret@"), method="GET", body=None)
        await ask(http1, url, body=None)

    host = f"Host: {url.split('/')[2]}\r\n".encode()
    first, second, third = (sent for _, sent in vendor.requests)
    assert first == (
        b"POST /a%20b/%C3%BC?q=1&r=%20 HTTP/1.1\r\n" + host + b"Accept-Encoding: identity\r\nUser-Agent: Parley\r\n"
        b"X-A: 1\r\naccept: text/plain\r\nContent-Length: 5\r\n\r\n12345"
    )
    assert second.startswith(b"GET / HTTP/1.1\r\n" + host)
    assert b"\r\nAuthorization: Basic bWU6c2VAY3JldA==\r\n" in second
    assert b"Content-Length" not in second
    assert b"\r\nContent-Length: 0\r\n" in third


async def test_the_most_recent_connection_is_reused_first(http1: Http1Client):
    vendor = Vendor(WHOLE)
    async with played(vendor) as url:
        assert await asyncio.gather(ask(http1, url), ask(http1, url)) == [b"ok", b"ok"]
        for _ in range(3):
            await ask(http1, url)

    assert vendor.connections == 2
    assert len({number for number, _ in vendor.requests[2:]}) == 1


async def test_the_connection_of_a_complete_unread_answer_is_reused(http1: Http1Client):
    vendor = Vendor(WHOLE)
    async with played(vendor) as url, requested(http1, url) as first:
        assert await ask(http1, url) == b"ok"
        assert await body(first) == b"ok"

    assert vendor.connections == 1


@pytest.mark.parametrize(
    "answer",
    [
        WHOLE.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"),
        WHOLE.replace(b"1.1", b"1.0"),
        WHOLE + b"and more",
        WHOLE + WHOLE,
    ],
)
async def test_exhausted_connections_are_not_reused(http1: Http1Client, answer: bytes):
    vendor = Vendor(answer, WHOLE)
    async with played(vendor) as url:
        assert await ask(http1, url) == b"ok"
        assert await ask(http1, url) == b"ok"

    assert [number for number, _ in vendor.requests] == [1, 2]


async def test_idle_connection_ends_after_its_time():
    vendor = Vendor(WHOLE)
    async with open_http1(aiohttp.ThreadedResolver(), idle_s=0.05) as http1, played(vendor) as url:
        await ask(http1, url)
        async with asyncio.timeout(5):
            await vendor.left.wait()
        await ask(http1, url)

    assert vendor.connections == 2


async def test_idle_connections_closed_by_the_vendor_are_not_used(http1: Http1Client):
    async def once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request(reader)
        writer.write(WHOLE)

    async with played(once) as url:
        await ask(http1, url)
        async with asyncio.timeout(5):
            while http1._pool._open:  # noqa: ASYNC110 - its end is no event
                await asyncio.sleep(0)
        assert http1._pool.take(parse_url(url).origin) is None
        assert await ask(http1, url) == b"ok"


async def test_a_reused_connection_that_dies_is_replaced_immediately(http1: Http1Client):
    vendor = Vendor(WHOLE, None, WHOLE)
    async with played(vendor) as url:
        await ask(http1, url)
        assert await ask(http1, url, body=b"second") == b"ok"

    assert [(number, sent.endswith(b"second")) for number, sent in vendor.requests] == [
        (1, False),
        (1, True),
        (2, True),
    ]


async def test_new_connection_that_dies_is_not_replaced(http1: Http1Client):
    vendor = Vendor(WHOLE, None, None)
    async with played(vendor) as url:
        await ask(http1, url)
        with pytest.raises(ConnectionError):
            await ask(http1, url)

    assert len(vendor.requests) == 3


async def test_a_connection_lost_during_its_answer_is_not_replaced(http1: Http1Client):
    async def dying(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request(reader)
        writer.write(WHOLE)
        await request(reader)
        writer.write(b"HTTP/1.1 200")

    async with played(dying) as url:
        await ask(http1, url)
        with pytest.raises(ConnectionError):
            await ask(http1, url)


async def test_calls_that_must_not_be_repeated_use_a_new_connection(http1: Http1Client):
    vendor = Vendor(WHOLE)
    async with played(vendor) as url:
        await ask(http1, url)
        await ask(http1, url, repeatable=False)

    assert vendor.connections == 2


async def test_an_answer_may_arrive_before_its_request_is_sent(http1: Http1Client):
    async def hasty(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(WHOLE.replace(b"200 OK", b"408 Late"))

    async with played(hasty) as url, requested(http1, url) as answer:
        assert (answer.status, await body(answer)) == (408, b"ok")


async def test_the_vendor_is_throttled_while_nobody_reads(http1: Http1Client):
    piece, count = b"%x\r\n%b\r\n" % (65_536, bytes(65_536)), 512
    written, other = 0, Vendor(WHOLE)

    async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal written
        await request(reader)
        writer.write(CHUNKED)
        for _ in range(count):
            writer.write(piece)
            await writer.drain()
            written += 1
        writer.write(b"0\r\n\r\n")
        await request(reader)
        writer.write(WHOLE)

    async with played(flood) as url, played(other) as other_url:
        async with requested(http1, url) as answer:
            for _ in range(count):  # Meanwhile, a vendor that is not throttled would have sent everything.
                await ask(http1, other_url)
            assert written < count
            sizes = []
            while got := await answer.read():
                sizes.append(len(got))
        assert await ask(http1, url) == b"ok"

    assert sum(sizes) == count * 65_536
    assert MAX_UNREAD_BYTES < max(sizes) <= MAX_UNREAD_BYTES + ONE_READ_BYTES


@pytest.mark.parametrize("sent", [b"", b"HTTP/1.1 200", CHUNKED, CHUNKED + b"5\r\nhello\r\n"])
async def test_cancelling_closes_the_connection_immediately(http1: Http1Client, sent: bytes):
    loop = asyncio.get_running_loop()
    other, reached, left = Vendor(WHOLE), asyncio.Event(), loop.create_future()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request(reader)
        writer.write(sent)
        reached.set()
        await gone(reader)
        left.set_result(loop.time())

    async with played(silent) as url, played(other) as other_url:
        asking = loop.create_task(ask(http1, url))
        await reached.wait()
        await ask(http1, other_url)  # What was sent before has arrived.
        assert not asking.done()
        asking.cancel()
        cancelled = loop.time()
        async with asyncio.timeout(5):
            assert await left - cancelled < 0.5
        with pytest.raises(asyncio.CancelledError):
            await asking


async def test_closing_a_client_leaves_nothing_open():
    loop = asyncio.get_running_loop()
    vendor, left = Vendor(WHOLE), asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request(reader)
        writer.write(CHUNKED)
        await gone(reader)
        left.set()

    async with played(vendor) as idle_url, played(silent) as url:
        async with open_http1(aiohttp.ThreadedResolver(), idle_s=60) as http1, AsyncExitStack() as held:
            await ask(http1, idle_url)
            answer = await held.enter_async_context(requested(http1, url))
            held.pop_all()
        begun = loop.time()
        async with asyncio.timeout(5):
            await vendor.left.wait()
            await left.wait()
        assert loop.time() - begun < 0.5
        with pytest.raises(BrokenResponse):
            await answer.read()


async def test_many_concurrent_lookups_are_answered_and_leave_no_file_open():
    def files() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while sent := await request(reader):
            writer.write(CHUNKED)
            for letter in sent.rpartition(b"\r\n\r\n")[2]:
                writer.write(b"1\r\n%c\r\n" % letter)
                await asyncio.sleep(0)
            writer.write(b"0\r\n\r\n")

    async def one(http1: Http1Client, url: str, number: int) -> None:
        for turn in range(3):
            sent = f"{number}/{turn}".encode() * 3
            assert await ask(http1, url, body=sent) == sent

    async with asyncio.timeout(50):
        await asyncio.get_running_loop().run_in_executor(None, files)  # The loop of the thread.
        async with played(slow) as url:
            before = files()
            async with open_http1(aiohttp.ThreadedResolver(), idle_s=60) as http1:
                await asyncio.gather(*(one(http1, url, number) for number in range(200)))
                assert before + 200 < files()
        assert files() <= before
