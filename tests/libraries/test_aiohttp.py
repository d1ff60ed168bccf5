"""The undocumented parts of aiohttp's server that `app/http/wire/aiohttp_server.py` depends on.

If a slot is missing, the import of that module fails with a message that names it.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import FunctionType

from aiohttp import StreamReader, web
from aiohttp.http_parser import HttpRequestParser

from app.http.wire.aiohttp_server import (
    ServerConnection,
)
from tests.libraries.installed import lacking, other_parameters, version_fault
from tests.libraries.raw_http import GET, FakeTransport, answer, reached

OVERRIDDEN = {
    "connection_made": ("transport",),
    "connection_lost": ("exc",),
    "data_received": ("data",),
    "pause_reading": (),
    "resume_reading": ("resume_parser",),
    "_pause_transport_reading": (),
    "_resume_transport_reading": (),
    "finish_response": ("request", "resp", "start_time"),
    "handle_error": ("request", "status", "exc", "message"),
    "force_close": (),
}
READ_BUFFER_BYTES = 1024
UPLOAD = b"POST / HTTP/1.1\r\nHost: parley\r\nContent-Length: 1000000\r\n\r\n"
UPGRADE = b"GET / HTTP/1.1\r\nHost: parley\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"


@dataclass
class Seen:
    """The calls by aiohttp."""

    statuses: list[int] = field(default_factory=list)
    """The statuses that were passed to `handle_error`."""
    reads: list[int] = field(default_factory=list)
    """Sizes of the reads that were passed to `data_received`."""
    resumes: int = 0
    """Calls of `resume_transport_reading`."""


class Connection(ServerConnection):
    __slots__ = ("seen",)

    def __init__(self, server: web.Server) -> None:
        loop = asyncio.get_running_loop()
        super().__init__(server, loop=loop, access_log=None, lingering_time=0, read_bufsize=READ_BUFFER_BYTES)
        self.seen = Seen()

    def data_received(self, data: bytes) -> None:
        self.seen.reads.append(len(data))
        super().data_received(data)

    def resume_transport_reading(self) -> None:
        self.seen.resumes += 1
        super().resume_transport_reading()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        self.seen.statuses.append(status)
        response = web.Response(status=status)
        response.force_close()
        return response


@asynccontextmanager
async def connected(
    handler: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]],
) -> AsyncIterator[tuple[Connection, FakeTransport]]:
    server = web.Server(handler)
    connection, transport = Connection(server), FakeTransport()
    connection.connection_made(transport)
    try:
        await reached(lambda: connection.request_waiter is not None, "aiohttp does not set _waiter when it waits")
        yield connection, transport
    finally:
        connection.connection_lost(None)
        await server.shutdown(1)


def blocked(go: asyncio.Event) -> Callable[[web.BaseRequest], Awaitable[web.Response]]:
    """Return a handler that reads the request and answers once `go` is set."""

    async def wait(request: web.BaseRequest) -> web.Response:
        await go.wait()
        await request.content.readany()
        return web.Response()

    return wait


def test_the_version_is_in_the_range_that_was_tested() -> None:
    assert version_fault("aiohttp") is None


def test_overridden_and_called_methods_have_the_expected_parameters() -> None:
    assert other_parameters(web.RequestHandler, OVERRIDDEN) == []
    assert isinstance(web.RequestHandler._pause_transport_reading, FunctionType)


def test_other_classes_have_the_members_that_are_used() -> None:
    assert lacking(web.AppRunner, {"_make_server": "app/http/wire/aiohttp_server.py overrides it"}) == []
    assert (
        lacking(StreamReader, {"is_eof": "app/http/wire/framing.py", "exception": "app/http/wire/framing.py"}) == []
    )
    assert lacking(web.Request, {"_match_info": "app/http/wire/aiohttp_server.py sets it"}) == []


async def test_a_parsed_request_is_counted_and_waits_until_its_handler_runs() -> None:
    go = asyncio.Event()
    async with connected(blocked(go)) as (connection, transport):
        connection.data_received(GET + GET)

        assert connection.request_count == 2, "aiohttp does not count requests in data_received()"
        assert len(connection.waiting_requests) == 2, "aiohttp does not queue requests in data_received()"
        assert connection.newest_request()[0] is None
        await reached(
            lambda: connection.current_request is not None, "aiohttp does not set _current_request for a handler"
        )
        assert len(connection.waiting_requests) == 1
        assert connection.request_waiter is None, (
            "aiohttp keeps the future that a connection awaits between requests"
        )
        go.set()
        await reached(
            lambda: connection.request_waiter is not None, "aiohttp does not set _waiter after a response"
        )
        assert connection.current_request is None, "aiohttp keeps _current_request after its handler"
        assert transport.sent.count(b"HTTP/1.1 200 OK") == 2


async def test_an_unread_body_pauses_the_parser_and_reading_it_resumes() -> None:
    go = asyncio.Event()
    async with connected(blocked(go)) as (connection, transport):
        connection.data_received(UPLOAD)
        connection.data_received(bytes(2 * READ_BUFFER_BYTES))
        assert not connection.reading_paused, "aiohttp pauses a body before twice `read_bufsize` is unread"
        connection.data_received(bytes(READ_BUFFER_BYTES))

        assert connection.reading_paused, "aiohttp does not pause a body of which twice `read_bufsize` is unread"
        assert transport.paused
        _, body = connection.newest_request()
        assert body.total_bytes == 3 * READ_BUFFER_BYTES, "StreamReader.total_bytes does not count parsed bytes"
        reads = len(connection.seen.reads)
        go.set()
        await reached(lambda: not connection.reading_paused, "aiohttp does not resume a body that is read")
        assert connection.seen.reads[reads:] == [0], "aiohttp does not resume its parser by data_received(b'')"
        assert connection.seen.resumes == 1, "aiohttp does not call _resume_transport_reading()"
        assert not transport.paused


async def test_many_pipelined_requests_pause_reading_until_they_are_answered() -> None:
    go = asyncio.Event()
    async with connected(blocked(go)) as (connection, transport):
        connection.data_received(GET * 100)

        assert connection.buffer_paused, "aiohttp does not set _buffer_paused for pipelined requests"
        assert transport.paused
        go.set()
        await reached(
            lambda: transport.sent.count(b"HTTP/1.1 200 OK") == 100, "aiohttp does not resume pipelined requests"
        )
        assert not connection.buffer_paused, "aiohttp does not clear _buffer_paused"
        assert connection.seen.resumes, "aiohttp does not call _resume_transport_reading()"


async def test_the_parser_counts_a_request_that_began_before_its_body_ended_until_it_is_told_twice() -> None:
    handler = web.RequestHandler(web.Server(answer), loop=asyncio.get_running_loop())
    parser = HttpRequestParser(handler, asyncio.get_running_loop(), 2**16, max_msg_queue_size=1)
    post = b"POST / HTTP/1.1\r\nHost: parley\r\nContent-Length: 1\r\n\r\n"
    assert len(parser.feed_data(post)[0]) == 1
    parser.message_consumed()

    assert not parser.feed_data(b"x" + GET)[0], (
        "aiohttp counts requests in another way: ServerConnection may not need incomplete_body any more"
    )
    parser.message_consumed()
    assert len(parser.feed_data(b"")[0]) == 1, "message_consumed() of aiohttp's parser does not make room"


async def test_bytes_after_an_upgrade_are_not_parsed_before_the_response() -> None:
    go = asyncio.Event()
    async with connected(blocked(go)) as (connection, _):
        connection.data_received(UPGRADE + GET)

        assert connection.upgraded, "aiohttp does not set _upgraded for an upgrade request"
        assert connection.request_count == 1
        go.set()
        await reached(
            lambda: connection.request_count == 2, "aiohttp does not parse what follows a declined upgrade"
        )
        assert not connection.upgraded, "aiohttp does not clear _upgraded after a declined upgrade"


async def test_bytes_that_cannot_be_parsed_become_an_error_after_the_waiting_requests() -> None:
    async with connected(answer) as (connection, transport):
        connection.data_received(GET + b"no HTTP\r\n\r\n")
        error, _ = connection.newest_request()

        assert error is not None, "aiohttp does not queue _ErrInfo for bytes that it cannot parse"
        await reached(lambda: transport.closed, "aiohttp does not answer a queued _ErrInfo")
        assert connection.seen.statuses == [400], "aiohttp does not call handle_error() for bytes it cannot parse"


async def test_an_invalid_request_that_is_added_is_answered_by_handle_error() -> None:
    async with connected(answer) as (connection, transport):
        connection.add_invalid_request(ValueError("too long"), "too long")

        assert isinstance(connection.newest_request()[0], ValueError)
        await reached(lambda: transport.closed, "aiohttp does not answer a queued _ErrInfo")
        assert connection.seen.statuses == [400], "aiohttp does not call handle_error() for a queued _ErrInfo"
        assert transport.sent.startswith(b"HTTP/1.0 400"), (
            "the response to bytes that are not HTTP has another version"
        )


async def test_a_lost_connection_wakes_a_writer_without_an_error() -> None:
    woken: asyncio.Future[BaseException | None] = asyncio.get_running_loop().create_future()

    async def drain(request: web.BaseRequest) -> web.Response:
        try:
            await request.writer.drain()
        except Exception as error:
            woken.set_result(error)
            raise
        woken.set_result(None)
        return web.Response()

    async with connected(drain) as (connection, _):
        connection.pause_writing()
        connection.data_received(GET)
        await reached(
            lambda: connection._drain_waiter is not None, "aiohttp does not set _drain_waiter for writer.drain()"
        )
        assert not woken.done(), "writer.drain() does not wait while writing is paused"
        connection.connection_lost(None)

        assert await woken is None, "connection_lost(None) fails writer.drain(): see connection_lost in server.py"
