"""The undocumented parts of aiohttp's server that this package depends on, under public names.

No other module of `app` uses private members of aiohttp; `streams/sse.py` uses those of its responses.
`tests/libraries/test_aiohttp.py` checks each of them in the installed version, and `test_aiohttp_runner.py` there
those of its runner.
"""

# ruff: noqa: SLF001 - see above

import asyncio
from abc import abstractmethod
from collections import deque
from collections.abc import Callable
from inspect import ismemberdescriptor
from typing import Any

import aiohttp
from aiohttp import EMPTY_PAYLOAD, HttpVersion11, StreamReader, web
from aiohttp.http_parser import RawRequestMessage
from aiohttp.web_protocol import _ErrInfo

RequestFactory = Callable[..., web.BaseRequest]


def _slot(name: str) -> Any:
    """Return the descriptor of a slot of aiohttp's connection."""
    descriptor = getattr(web.RequestHandler, name, None)
    if not ismemberdescriptor(descriptor):
        raise ImportError(
            f"aiohttp {aiohttp.__version__} has no slot RequestHandler.{name}: app/http/wire/aiohttp_server.py "
            "gives it a public name, and the code that uses this has to change"
        )
    return descriptor


class ServerConnection(web.RequestHandler):
    """A server connection of aiohttp whose state can be read.

    Each public name is the descriptor of the private slot, so it costs as much as the private name.
    """

    __slots__ = ("incomplete_body",)

    reading_paused: bool = _slot("_reading_paused")
    """Whether a body that is not read has paused the parser."""
    buffer_paused: bool = _slot("_buffer_paused")
    """Whether too many requests, or too many bytes after an upgrade, wait."""
    upgraded: bool = _slot("_upgraded")
    """Whether a client has asked for another protocol. aiohttp then does not parse what follows the request."""
    request_count: int = _slot("_request_count")
    """Number of requests that have been parsed, including one that cannot be parsed."""
    waiting_requests: deque[tuple[RawRequestMessage | _ErrInfo, StreamReader]] = _slot("_messages")
    """The requests that have been parsed but not started."""
    request_waiter: asyncio.Future[None] | None = _slot("_waiter")
    """The future that the connection's task awaits while there is no request, else `None`."""
    current_request: web.BaseRequest | None = _slot("_current_request")
    """The request whose handler runs, or `None`."""
    pause_transport_reading = web.RequestHandler._pause_transport_reading
    """Stop reading from the socket."""

    incomplete_body: StreamReader | None
    """The body of the newest request that has begun, if it was incomplete then."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.incomplete_body = None

    def data_received(self, data: bytes) -> None:
        """Parse `data`, and correct the parser's number of waiting requests.

        aiohttp's parser adds 1 at the end of a body, and subtracts 1 when the request begins. If a request begins
        before the end of its body, there is nothing to subtract yet, so the parser would count it forever. At 32,
        it would stop after each request, but the connection relies on it to parse all data that it was given.
        """
        super().data_received(data)
        body = self.incomplete_body
        if body is not None and body.is_eof():
            self.incomplete_body = None
            if (parser := self._parser) is not None:
                parser.message_consumed()
            if not self.reading_paused:
                super().data_received(b"")

    def restart_idle_time(self) -> None:
        """Keep an idle connection for its full time from now on."""
        self._next_keepalive_close_time = self._loop.time() + self._keepalive_timeout

    def resume_transport_reading(self) -> None:
        """Continue reading from the socket. aiohttp calls this when none of its own buffers is full."""
        super()._resume_transport_reading()

    def _resume_transport_reading(self) -> None:
        self.resume_transport_reading()

    def newest_request(self) -> tuple[BaseException | None, StreamReader]:
        """Return the error and the body of the request that was parsed last.

        The error is `None` if the request could be parsed. If no request waits, the last one is the current one.
        """
        if self.waiting_requests:
            message, body = self.waiting_requests[-1]
            return (message.exc if isinstance(message, _ErrInfo) else None), body
        request = self.current_request
        return None, EMPTY_PAYLOAD if request is None else request.content

    def add_invalid_request(self, error: Exception, message: str) -> None:
        """Have `handle_error` answer with status 400 after the requests that wait."""
        self.waiting_requests.append((_ErrInfo(status=400, exc=error, message=message), EMPTY_PAYLOAD))
        if (waiter := self.request_waiter) is not None and not waiter.done():
            waiter.set_result(None)


class ApplicationRunner(web.AppRunner):
    """A runner of aiohttp whose server is made by a subclass."""

    closing = False
    """While true, every response says `Connection: close`."""

    @abstractmethod
    def make_server(self, request_factory: RequestFactory) -> web.Server:
        """Return the server of the application. It must make its requests with `request_factory`."""

    async def _make_server(self) -> web.Server:
        make_request: RequestFactory = (await super()._make_server()).request_factory

        def begin_request(
            message: RawRequestMessage, body: StreamReader, connection: ServerConnection, *others: Any
        ) -> web.BaseRequest:
            connection.incomplete_body = None if body.is_eof() else body
            if self.closing:
                message = message._replace(should_close=True)
            return make_request(message, body, connection, *others)

        return self.make_server(begin_request)


def set_match(request: web.Request, match: web.UrlMappingMatchInfo, application: web.Application) -> None:
    """Make `match` the result of the routing of `request`, as `web.Application` does."""
    request._match_info = match
    match.add_app(application)
    match.freeze()


def drop_handler(match: web.UrlMappingMatchInfo) -> None:
    """Delete the handler of the route of a path or method without an endpoint, a bound method of that route."""
    del match.route._handler


def respond_with_http_1_1(request: web.BaseRequest) -> None:
    """Make 1.1 the version of the response, whatever version `request` has."""
    request._version = HttpVersion11
    request._cache.pop("version", None)
