"""aiohttp's server with our limits, and with our error envelope for requests that it cannot parse."""

import asyncio
from collections.abc import Callable
from typing import Any, cast

import structlog
from aiohttp import web

from app.http.errors import error_response
from app.http.request.pipeline import count, log_anonymous, request_pipeline
from app.http.rows.endpoint import REQUEST_CONTEXT
from app.http.serving.connections import (
    LATE_HEAD,
    Bounds,
    Connections,
    limit_unacknowledged,
    raw_response,
)
from app.http.wire.aiohttp_server import ApplicationRunner, RequestFactory, respond_with_http_1_1
from app.http.wire.direct import DirectAnswers
from app.http.wire.framing import NOT_HTTP, BoundedConnection
from app.http.wire.ingress import DENSE_SHARE, ParsingTurns
from streams.sse import StreamConnection
from streams.wire.errors import InternalError, ServiceError
from streams.wire.ids import new_id

log = structlog.get_logger()

_HTTP: dict[str, Any] = {
    "access_log": None,
    "auto_decompress": False,  # Encoded bodies are refused.
    "lingering_time": 0,  # The pipeline reads the rest of an upload itself.
}

NO_BOUNDS = Bounds()
DIRECT: web.AppKey[DirectAnswers] = web.AppKey("direct", DirectAnswers)


def runner_of(application: web.Application, *, shutdown_timeout_s: float, bounds: Bounds = NO_BOUNDS) -> "Runner":
    """Return a runner that serves `application` within the limits `bounds`. It installs no signal handlers."""
    return Runner(application, shutdown_timeout_s=shutdown_timeout_s, bounds=bounds)


class Runner(ApplicationRunner):
    """aiohttp's runner with connection limits."""

    def __init__(self, application: web.Application, *, shutdown_timeout_s: float, bounds: Bounds) -> None:
        super().__init__(application, handle_signals=False, shutdown_timeout=shutdown_timeout_s)
        self._direct: DirectAnswers | None = None
        self._connections = Connections(bounds)

    @property
    def connections(self) -> int:
        """Number of open connections."""
        return len(self.server.connections) if self.server is not None else 0

    def direct_answers(self) -> DirectAnswers | None:
        """Return the direct answers, unless every response has to say that its connection closes."""
        return None if self.closing else self._direct

    def close_idle(self) -> None:
        """Close the connections on which no request has begun.

        aiohttp's `pre_shutdown` leaves them open, and discards what arrives of requests that have begun.
        """
        if self.server is not None:
            for connection in self.server.connections:
                if cast("_Connection", connection).is_idle:
                    connection.force_close()

    def make_server(self, request_factory: RequestFactory) -> web.Server:
        self._direct = self.app.get(DIRECT)
        loop = asyncio.get_running_loop()
        return _Server(
            request_pipeline(self.app),
            self._connections,
            direct=self.direct_answers,
            request_factory=request_factory,
            loop=loop,
            ordinary_turns=ParsingTurns(loop, share=None),
            dense_turns=ParsingTurns(loop, share=DENSE_SHARE),
            keepalive_timeout=self._connections.bounds.keep_alive_s,
            **_HTTP,
        )

    async def cleanup(self) -> None:
        try:
            await super().cleanup()
        finally:
            self._connections.close()


class _Server(web.Server):
    def __init__(
        self,
        handler: Any,
        connections: Connections,
        *,
        direct: Callable[[], DirectAnswers | None],
        request_factory: RequestFactory,
        **options: Any,
    ) -> None:
        """`options` are those of each connection."""
        super().__init__(handler, request_factory=request_factory)
        self.open_connections = connections
        self.direct = direct
        self._options = options

    def __call__(self) -> web.RequestHandler:
        return _Connection(self, **self._options)


class _Connection(BoundedConnection, StreamConnection):
    __slots__ = ("awaits_head", "connections", "direct", "head_began", "network", "on_lost", "send_timeout_s")
    awaits_head: bool
    head_began: bool
    network: str

    def __init__(self, server: _Server, **kwargs: Any) -> None:
        super().__init__(server, **kwargs)
        self.connections = server.open_connections
        self.direct = server.direct

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.on_lost = None
        self.send_timeout_s = None
        stream = cast("asyncio.Transport", transport)
        if self.connections.admit(self, stream):
            limit_unacknowledged(stream)
            super().connection_made(transport)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Wake the task that waits for the client to read; its next write finds the connection closed.

        With `exc`, aiohttp would fail the future that the task awaits. Its exception would then refer to the task's
        frames and these to the future, so that what the frames hold, a whole response, would wait for the garbage
        collector. The readers of a body get a `ConnectionResetError`, whatever `exc` is.
        """
        super().connection_lost(None)
        self.connections.release(self)
        if self.on_lost is not None:
            self.on_lost()

    async def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        """Send the rest of a response. The time for the next head starts here if part of it has arrived."""
        finished = await super().finish_response(request, resp, start_time)
        if self.next_head_began and self.transport is not None:
            self.connections.head_continues(self, complete=False)
        return finished

    @property
    def is_idle(self) -> bool:
        """Whether all requests are answered, and nothing of the next one has arrived."""
        head_began = self.awaits_head and self.head_began
        return self.request_waiter is not None and not self.waiting_requests and not head_began

    @property
    def _is_new(self) -> bool:
        """Whether nothing has arrived yet. The task that waits for requests may not have started."""
        return self.request_count == 0 and not self.head_began

    def parse(self, data: bytes) -> None:
        if (direct := self.direct()) is not None and direct.may_answer(data) and self._answer(data, direct):
            return
        super().parse(data)
        if self.awaits_head or (self.request_waiter is not None and not self.waiting_requests):
            self.connections.head_continues(self, complete=bool(self.waiting_requests))

    def _answer(self, data: bytes, direct: DirectAnswers) -> bool:
        """Answer a request directly if nothing else is in progress. Return whether it was answered."""
        transport = self.transport
        if transport is None or transport.is_closing() or transport.get_write_buffer_size() > 0:
            return False
        if not (self.is_idle or self._is_new) or self.next_head_began or self.upgraded or self.broken:
            return False
        peer = transport.get_extra_info("peername")
        response = direct.answer(data, peer=peer[0] if isinstance(peer, tuple) else "")
        if response is None:
            return False
        transport.write(response)
        count("GET", direct.path_of(data), status=200)
        self.connections.head_continues(self, complete=True)
        self.restart_idle_time()
        return True

    def end_for_late_head(self) -> None:
        """Close the connection. Send a 408 first if part of the head has arrived."""
        if self.head_began and self.transport is not None:
            request_id = new_id()
            log_anonymous("request.malformed", request_id=request_id, exception="late head")
            count("UNKNOWN", "none", status=408)
            self.transport.write(raw_response(LATE_HEAD, request_id=request_id))
        self.force_close()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Return the response to a request that aiohttp could not parse, or whose handler failed without one.

        The connection closes after it.
        """
        respond_with_http_1_1(request)
        context = request.get(REQUEST_CONTEXT)
        request_id = context.request_id if context else new_id()
        exception = None if exc is None else type(exc).__name__
        if status < 500:
            log_anonymous("request.malformed", request_id=request_id, exception=exception)
            count("UNKNOWN", "none", status=400)
        else:
            log.error("request.crashed", request_id=request_id, exc_info=exc)
        if request.writer.output_size > 0:
            raise ConnectionError("the response has begun and is cut off")
        fault = exc if isinstance(exc, ServiceError) else NOT_HTTP
        response = error_response(fault if status < 500 else InternalError(), {})
        response.headers.update({"X-Request-Id": request_id, "Server": "parley"})
        response.force_close()
        return response
