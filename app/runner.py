"""HTTP on a socket: aiohttp's server, and our envelope for what could not be read."""

import asyncio
from typing import Any

import structlog
from aiohttp import web
from aiohttp.http_parser import RawRequestMessage

from app.answering import NOT_HTTP, answering, count
from app.endpoint import KNOWN
from app.errors import error_response
from app.ingress import ParsingTurns, SlicedConnection
from streams.sse import StreamConnection
from streams.wire.errors import ServiceError
from streams.wire.ids import new_id

log = structlog.get_logger()

_HTTP: dict[str, Any] = {
    "access_log": None,
    "auto_decompress": False,  # nothing of a client's is: it is refused
    "max_line_size": 16 * 1024,
    "max_field_size": 16 * 1024,
    "lingering_time": 0,  # what answers reads that, and ends with the connection
}


def runner_of(application: web.Application, *, shutdown_timeout_s: float) -> web.AppRunner:
    """What serves `application`; it leaves signals alone."""
    return _Runner(application, handle_signals=False, shutdown_timeout=shutdown_timeout_s, **_HTTP)


class _Runner(web.AppRunner):
    async def _make_server(self) -> web.Server:
        made = await super()._make_server()
        turns = ParsingTurns(asyncio.get_running_loop())
        return _Server(answering(self.app), request_factory=made.request_factory, turns=turns, **self._kwargs)


class _Server(web.Server):
    def __call__(self) -> web.RequestHandler:
        return _Connection(self, loop=self._loop, **self._kwargs)


class _Connection(SlicedConnection, StreamConnection):
    __slots__ = ("on_lost", "send_timeout_s")

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.on_lost = None
        self.send_timeout_s = None
        super().connection_made(transport)

    def connection_lost(self, exc: BaseException | None) -> None:
        super().connection_lost(exc)
        if self.on_lost is not None:
            self.on_lost()

    def parse(self, data: bytes) -> None:
        super().parse(data)
        request = self._current_request
        broken = bool(self._messages) and not isinstance(self._messages[-1][0], RawRequestMessage)
        if broken:
            self.drop_held()  # the parser refuses all of it
        if broken and request is not None and not request.content.is_eof():
            # in the middle of a body: aiohttp tells nobody who waits for more of it
            request.content.set_exception(web.RequestPayloadError("the body is not valid HTTP"))

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer what could not be read, or what failed where no answer was made; the connection ends."""
        known = request.get(KNOWN)
        given = known.request_id if known else new_id()
        what = None if exc is None else type(exc).__name__
        if status < 500:
            log.info("request.malformed", request_id=given, exception=what)
            count("UNKNOWN", "none", status=400)
        else:
            log.error("request.crashed", request_id=given, exc_info=exc)
        if request.writer.output_size > 0:
            raise ConnectionError("the answer has begun: it is cut")
        response = error_response(NOT_HTTP if status < 500 else ServiceError("the server failed"))
        response.headers.update({"X-Request-Id": given, "Server": "parley"})
        response.force_close()
        return response
