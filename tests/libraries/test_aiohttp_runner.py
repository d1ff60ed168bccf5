"""The undocumented parts of aiohttp's runner, response and match that the HTTP layer depends on."""

import asyncio
from collections.abc import Callable

import pytest
from aiohttp import HttpVersion10, HttpVersion11, web
from aiohttp.test_utils import make_mocked_request

from app.http.wire.aiohttp_server import (
    ApplicationRunner,
    ServerConnection,
    drop_handler,
    respond_with_http_1_1,
    set_match,
)
from tests.libraries.raw_http import GET, FakeTransport, answer, reached


class Server(web.Server):
    def __call__(self) -> ServerConnection:
        return ServerConnection(self, loop=asyncio.get_running_loop())


class Runner(ApplicationRunner):
    def make_server(self, request_factory: Callable[..., web.BaseRequest]) -> web.Server:
        return Server(answer, request_factory=request_factory)


async def test_the_runner_makes_the_server_of_its_subclass_and_can_close_connections() -> None:
    runner = Runner(web.Application())
    await runner.setup()
    assert runner.server is not None
    assert runner.server.request_handler is answer, "aiohttp's runner does not call _make_server()"
    transports = []
    for closing in (False, True):
        runner.closing = closing
        connection, transport = runner.server(), FakeTransport()
        connection.connection_made(transport)
        connection.data_received(GET)
        await reached(lambda sent=transport: sent.sent, "the server of an ApplicationRunner does not answer")
        transports.append(transport)
    await runner.cleanup()

    assert [b"Connection: close" in transport.sent for transport in transports] == [False, True], (
        "`should_close` has no effect"
    )


@pytest.mark.parametrize("read", [False, True])
async def test_the_version_of_a_response_can_be_set(*, read: bool) -> None:
    request = make_mocked_request("GET", "/", version=HttpVersion10)
    assert not read or request.version == HttpVersion10

    respond_with_http_1_1(request)

    assert request.version == HttpVersion11, (
        "web.BaseRequest.version is not read from _version and cached in _cache"
    )


async def test_a_match_can_be_set_and_dropped() -> None:
    application = web.Application()
    application.router.add_get("/found", answer)
    found, missing = (make_mocked_request("GET", path) for path in ("/found", "/missing"))
    found._match_info = missing._match_info = None
    for request in (found, missing):
        set_match(request, await application.router.resolve(request), application)

    assert found.match_info.handler is answer
    assert found.app is application, "web.Request.app is not read from _match_info"
    assert isinstance(missing.match_info.http_exception, web.HTTPNotFound)
    handler = missing.match_info.handler
    assert handler.__self__ is missing.match_info.route, (
        "the route of an unknown path has no reference to itself to drop"
    )
    drop_handler(missing.match_info)
    assert not hasattr(missing.match_info.route, "_handler")
