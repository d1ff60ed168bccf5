"""WebSockets of vendors at a real socket: messages, closes and errors."""

import asyncio
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Any

import aiohttp
import pytest
from aiohttp import WSMsgType, web

from streams.wire.errors import ConfigInvalid
from tests.vendors.http.upstream import Respond, Upstream, hold, plain, refusing
from tests.waiting import until
from vendors.errors import Garbled, Refused, TimedOut, Unreachable
from vendors.http.http1.client import Http1Client
from vendors.http.outgoing import Outgoing, Repeat
from vendors.http.sockets import Socket, socket_or_error
from vendors.http.transport import VendorHttp


def speaking(talk: Callable[[web.WebSocketResponse], Awaitable[Any]]) -> Respond:
    """Return a handler that accepts a socket, runs `talk` and closes with 1000."""

    async def answer(request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await talk(socket)
        await socket.close()
        return socket

    return answer


async def heard(socket: Socket) -> list[str | bytes]:
    return [message async for message in socket.messages()]


def call(upstream: Upstream, **fields: Any) -> Outgoing:
    return Outgoing("acme", f"{upstream.url}/talk?a=1", headers={"X-Key": "k"}, **fields)


async def test_text_and_binary_messages_are_exchanged(http: VendorHttp, upstream: Upstream):
    async def echo(socket: web.WebSocketResponse) -> None:
        for _ in range(2):
            message = await socket.receive()
            await (socket.send_str if message.type is WSMsgType.TEXT else socket.send_bytes)(message.data)

    upstream.respond_with(speaking(echo))
    async with http.websocket(call(upstream)) as socket:
        await socket.send("grüß")
        await socket.send(b"\0\xff")
        assert await heard(socket) == ["grüß", b"\0\xff"]

    assert (socket.close_code, socket.close_reason) == (1000, "")
    assert (upstream.seen[0].path, upstream.seen[0].headers["X-Key"]) == ("/talk", "k")


async def test_code_and_reason_of_a_close_are_reported(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(speaking(lambda socket: socket.close(code=4429, message=b"too many")))
    async with http.websocket(call(upstream)) as socket:
        assert await heard(socket) == []

    assert (socket.close_code, socket.close_reason) == (4429, "too many")


async def test_lost_connection_is_not_a_normal_close(http: VendorHttp, upstream: Upstream):
    async def vanish(request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await socket.send_str("first")
        request.transport.abort()
        return socket

    upstream.respond_with(vanish)
    async with http.websocket(call(upstream)) as socket:
        assert await heard(socket) == ["first"]

    assert socket.close_code == 1006


async def wait_for_loss(request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """Return a response, as a middleware, once its connection is lost."""
    response = await send(request)
    await until(lambda: response.connection is None or response.connection.transport is None)
    return response


@pytest.mark.parametrize(("repeat", "sent"), [(Repeat.NEVER, 1), (Repeat.SAFE, 2)])
async def test_handshake_followed_by_a_lost_connection_is_only_sent_again_if_it_may_be(
    http1: Http1Client, upstream: Upstream, repeat: Repeat, sent: int
):
    async def vanish(request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        request.transport.close()
        return socket

    upstream.respond_with(vanish)
    async with aiohttp.ClientSession(middlewares=(socket_or_error, wait_for_loss)) as session:
        with pytest.raises(Unreachable):
            async with VendorHttp(http1, session).websocket(call(upstream, repeat=repeat)):
                pass

    assert len(upstream.seen) == sent


async def test_sending_to_a_closed_socket_is_unreachable(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(speaking(lambda socket: socket.close(code=1011)))
    async with http.websocket(call(upstream)) as socket:
        await heard(socket)
        with pytest.raises(Unreachable):
            await socket.send("late")


async def test_leaving_the_block_closes_the_call_of_an_unresponsive_vendor(http: VendorHttp, upstream: Upstream):
    closed: list[tuple[Any, float]] = []

    async def deaf(request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse(autoclose=False)
        await socket.prepare(request)
        message = await socket.receive()
        closed.append((message.data, monotonic()))
        await asyncio.Event().wait()
        return socket

    upstream.respond_with(deaf)
    async with http.websocket(call(upstream)) as socket:
        await socket.send("something that nobody reads" * 10)
        left = monotonic()
    gone = monotonic()

    assert gone - left < 1
    async with asyncio.timeout(5):
        await upstream.left.wait()
    assert len(closed) == 1


async def test_reader_that_is_cancelled_closes(http: VendorHttp, upstream: Upstream):
    async def wait(socket: web.WebSocketResponse) -> None:
        await socket.receive()

    upstream.respond_with(speaking(wait))
    with pytest.raises(TimeoutError):
        async with http.websocket(call(upstream)) as socket, asyncio.timeout(0.05):
            await heard(socket)

    with pytest.raises(Unreachable):
        await socket.send("too late")


async def test_closing_wakes_all_readers(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(speaking(lambda socket: socket.receive()))
    async with http.websocket(call(upstream)) as socket:
        messages, _ = await asyncio.gather(heard(socket), socket.close())

    assert messages == []
    assert socket.close_code == 1006


async def test_message_over_the_limit_is_garbled(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(speaking(lambda socket: socket.send_bytes(bytes(2000))))
    with pytest.raises(Garbled):
        async with http.websocket(call(upstream), max_message_bytes=1000) as socket:
            await heard(socket)


async def test_text_that_is_not_utf8_is_garbled(http: VendorHttp, upstream: Upstream):
    async def nonsense(request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        request.transport.write(b"\x81\x02\xff\xff")
        await hold(request)
        return socket

    upstream.respond_with(nonsense)
    with pytest.raises(Garbled):
        async with http.websocket(call(upstream)) as socket:
            await heard(socket)


async def test_error_of_a_refused_handshake_has_status_and_message(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(refusing(401, "no such key"))
    with pytest.raises(Refused, match="acme answered 401: no such key") as fault:
        async with http.websocket(call(upstream)):
            pass

    assert (fault.value.vendor_status, fault.value.retryable, len(upstream.seen)) == (401, False, 1)


async def test_throttled_handshake_is_retried_once(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(refusing(429, retry_after_ms="10"), speaking(lambda socket: socket.send_str("hello")))
    async with http.websocket(call(upstream, repeat=Repeat.SAFE)) as socket:
        assert await heard(socket) == ["hello"]

    assert len(upstream.seen) == 2


async def test_redirect_is_not_followed_with_the_key(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(plain(307, Location=f"{upstream.url}/elsewhere"))
    with pytest.raises(Refused, match="answered 307"):
        async with http.websocket(call(upstream)):
            pass

    assert [seen.path for seen in upstream.seen] == ["/talk"]


async def test_an_http_page_instead_of_a_socket_is_refused(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(plain(200, b"<html>", Content_Type="text/html"))
    with pytest.raises(Refused, match="answered 200"):
        async with http.websocket(call(upstream)):
            pass


async def test_heartbeat_detects_a_dead_connection(http: VendorHttp, upstream: Upstream):
    async def numb(request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse(autoping=False)
        await socket.prepare(request)
        await hold(request)
        return socket

    upstream.respond_with(numb)
    with pytest.raises(TimedOut):
        async with http.websocket(call(upstream), heartbeat_s=0.05) as socket:
            await heard(socket)


async def test_handshake_that_hangs_times_out(http: VendorHttp, upstream: Upstream):
    async def hang(request: web.Request) -> web.StreamResponse:
        await hold(request)
        raise AssertionError

    upstream.respond_with(hang)
    with pytest.raises(TimedOut):
        async with http.websocket(call(upstream, connect_s=0.05)):
            pass


async def test_key_with_a_line_feed_is_an_error_of_the_config(http: VendorHttp, upstream: Upstream):
    with pytest.raises(ConfigInvalid):
        async with http.websocket(Outgoing("acme", upstream.url, headers={"X-Key": "k\nX: y"})):
            pass
