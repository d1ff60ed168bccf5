"""HTTP on a socket: aiohttp's server, and our envelope for what could not be read."""

import asyncio
from typing import Any, cast

import structlog
from aiohttp import HttpVersion11, web
from aiohttp.http_parser import RawRequestMessage

from app.http.connections import (
    LATE_HEAD,
    Bounds,
    Connections,
    limit_unacknowledged,
    raw_answer,
)
from app.http.endpoint import REQUEST_CONTEXT
from app.http.errors import error_response
from app.http.framing import NOT_HTTP, BoundedConnection
from app.http.ingress import ParsingTurns
from app.http.pipeline import answering, count, log_anonymous
from streams.sse import StreamConnection
from streams.wire.errors import ServiceError
from streams.wire.ids import new_id

log = structlog.get_logger()

_HTTP: dict[str, Any] = {
    "access_log": None,
    "auto_decompress": False,  # nothing of a client's is: it is refused
    "lingering_time": 0,  # what answers reads that, and ends with the connection
}

NO_BOUNDS = Bounds()


def runner_of(application: web.Application, *, shutdown_timeout_s: float, bounds: Bounds = NO_BOUNDS) -> "Runner":
    """A runner that serves `application` to as many connections as `bounds` admits; it leaves signals alone."""
    return Runner(application, shutdown_timeout_s=shutdown_timeout_s, bounds=bounds)


class Runner(web.AppRunner):
    """aiohttp's runner. `closing`: every response tells the client that its connection closes."""

    closing = False

    def __init__(self, application: web.Application, *, shutdown_timeout_s: float, bounds: Bounds) -> None:
        self._connections = Connections(bounds)
        super().__init__(
            application,
            handle_signals=False,
            shutdown_timeout=shutdown_timeout_s,
            keepalive_timeout=bounds.keep_alive_s,
            **_HTTP,
        )

    @property
    def connections(self) -> int:
        """How many connections are open."""
        return len(self.server.connections) if self.server is not None else 0

    @property
    def busy(self) -> bool:
        """Whether a request is being answered."""
        return self.server is not None and any(
            isinstance(each, _Connection) and each.busy for each in self.server.connections
        )

    async def _make_server(self) -> web.Server:
        request_of = (await super()._make_server()).request_factory

        def request_that_may_close(message: RawRequestMessage, *others: Any) -> web.BaseRequest:
            return request_of(message._replace(should_close=True) if self.closing else message, *others)

        return _Server(
            answering(self.app),
            self._connections,
            request_factory=request_that_may_close,
            turns=ParsingTurns(asyncio.get_running_loop()),
            **self._kwargs,
        )

    async def _cleanup_server(self) -> None:
        self._connections.close()
        await super()._cleanup_server()


class _Server(web.Server):
    def __init__(self, handler: Any, connections: Connections, **kwargs: Any) -> None:
        super().__init__(handler, **kwargs)
        self.open_connections = connections

    def __call__(self) -> web.RequestHandler:
        return _Connection(self, loop=self._loop, **self._kwargs)


class _Connection(BoundedConnection, StreamConnection):
    __slots__ = ("awaits_head", "connections", "head_began", "network", "on_lost", "send_timeout_s")
    awaits_head: bool
    head_began: bool
    network: str

    def __init__(self, server: _Server, **kwargs: Any) -> None:
        super().__init__(server, **kwargs)
        self.connections = server.open_connections

    @property
    def busy(self) -> bool:
        """Whether it has a request that is not answered."""
        return self._current_request is not None or bool(self._messages)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.on_lost = None
        self.send_timeout_s = None
        stream = cast("asyncio.Transport", transport)
        if self.connections.admit(self, stream):
            limit_unacknowledged(stream)
            super().connection_made(transport)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._end_drain()
        super().connection_lost(exc)
        self.connections.release(self)
        if self.on_lost is not None:
            self.on_lost()

    def parse(self, data: bytes) -> None:
        super().parse(data)
        if self.awaits_head or (self._waiter is not None and not self._messages):
            self.connections.head_continues(self, whole=bool(self._messages))

    def _end_drain(self) -> None:
        """Wake the task that waits for the client to read; its next write finds the connection closed.

        aiohttp would fail the future that the task awaits. Its exception would then refer to the task's frames and
        these to the future, so that what the frames hold, a whole response, would wait for the garbage collector.
        """
        waiter, self._drain_waiter = self._drain_waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    def end_for_late_head(self) -> None:
        """Close, with an answer where some of the head has come."""
        if self.head_began and self.transport is not None:
            given = new_id()
            log_anonymous("request.malformed", request_id=given, exception="late head")
            count("UNKNOWN", "none", status=408)
            self.transport.write(raw_answer(LATE_HEAD, request_id=given))
        self.force_close()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer what could not be read, or what failed where no answer was made; the connection ends."""
        request._version = HttpVersion11  # noqa: SLF001 - that of the answer, whatever the request claims
        context = request.get(REQUEST_CONTEXT)
        given = context.request_id if context else new_id()
        what = None if exc is None else type(exc).__name__
        if status < 500:
            log_anonymous("request.malformed", request_id=given, exception=what)
            count("UNKNOWN", "none", status=400)
        else:
            log.error("request.crashed", request_id=given, exc_info=exc)
        if request.writer.output_size > 0:
            raise ConnectionError("the answer has begun: it is cut")
        fault = exc if isinstance(exc, ServiceError) else NOT_HTTP
        response = error_response(fault if status < 500 else ServiceError("the server failed"))
        response.headers.update({"X-Request-Id": given, "Server": "parley"})
        response.force_close()
        return response
