"""Vendors over HTTP, at a real socket: requests, responses, errors and closed connections."""

import asyncio
import socket
from gzip import compress
from typing import Any

import pytest

from streams.tasks import background
from streams.wire.errors import ConfigInvalid
from streams.wire.ids import REQUEST_ID
from streams.wire.model import Model
from tests.vendors.http.http_calls import ask, failing, failing_handshake
from tests.vendors.http.upstream import Respond, Upstream, hold, plain, refusing, streaming
from tests.waiting import until
from vendors.errors import Garbled, TimedOut, Unreachable
from vendors.http.outgoing import Outgoing, ReadCall
from vendors.http.transport import Incoming, VendorHttp
from vendors.sandbox.server import Running


async def collect(answer: Incoming, into: list[bytes]) -> None:
    async for piece in answer.pieces():
        into.append(piece)  # noqa: PERF401 - kept when reading fails, too


async def ask_json(http: VendorHttp, url: str, **limits: int) -> Any:
    async with http.stream(Outgoing("acme", url)) as answer:
        return await answer.json(**limits)


async def test_request_is_sent_and_response_is_read(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(streaming([b"one ", b"two"], content_type="Text/Plain; charset=utf-8"))

    async with http.stream(Outgoing("acme", f"{upstream.url}/path", headers={"X-A": "1"}, body=b"q")) as answer:
        assert answer.content_type == "text/plain"
        assert b"".join([piece async for piece in answer.pieces()]) == b"one two"

    (seen,) = upstream.seen
    assert (seen.path, seen.body, seen.headers["X-A"]) == ("/path", b"q", "1")


async def test_refused_connection_is_unreachable(http: VendorHttp):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        fault = await failing(http, f"http://127.0.0.1:{closed.getsockname()[1]}/")

    assert isinstance(fault, Unreachable)
    assert fault.retryable
    assert str(fault) == "backend unavailable: acme was not reached: connection refused"


async def test_response_that_is_not_http_is_garbled(http: VendorHttp):
    async def chatter(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 mail.example ESMTP\r\n\r\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(chatter, "127.0.0.1", 0) as server:
        fault = await failing(http, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/")

    assert isinstance(fault, Garbled)


async def test_connection_that_does_not_open_in_time_is_not_retried(http: VendorHttp):
    loop = asyncio.get_running_loop()
    with socket.socket() as full, socket.socket() as first, socket.socket() as second:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for taken in (first, second):
            taken.setblocking(False)
            taken.connect_ex(full.getsockname())
        begun = loop.time()

        fault = await failing(http, f"http://127.0.0.1:{full.getsockname()[1]}/", connect_s=0.3)

    assert isinstance(fault, TimedOut)
    assert 0.29 < loop.time() - begun < 0.6


@pytest.mark.parametrize("url", ["http://", "http://[::1", "acme", "http://acme.invalid:99999/"])
@pytest.mark.parametrize("fails", [failing, failing_handshake], ids=["request", "handshake"])
async def test_invalid_address_is_reported_and_not_retried(http: VendorHttp, url: str, fails: Any):
    fault = await fails(http, url)

    assert isinstance(fault, Unreachable)
    assert not fault.retryable


async def test_key_that_http_cannot_send_is_an_error_of_the_config(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(plain())

    with pytest.raises(ConfigInvalid, match=r"^config_invalid: acme: its API key") as fault:
        await ask(http, upstream.url, headers={"Authorization": "Bearer secret\n"})

    assert "secret" not in str(fault.value)
    assert upstream.seen == []


@pytest.mark.parametrize("headers", [{}, {"Content-Length": "100"}])
async def test_truncated_response_is_an_error(http: VendorHttp, headers: dict[str, str]):
    async def break_off(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"question")
        length = b"Content-Length: 100\r\n" if headers else b"Transfer-Encoding: chunked\r\n"
        writer.write(b"HTTP/1.1 200 OK\r\n%b\r\n" % length + (b"part" if headers else b"4\r\npart\r\n"))
        await writer.drain()
        writer.close()

    seen: list[bytes] = []
    async with await asyncio.start_server(break_off, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        async with http.stream(Outgoing("acme", url, body=b"question")) as answer:
            with pytest.raises(Garbled, match=r"acme broke off its answer$") as fault:
                await collect(answer, seen)

    assert seen == [b"part"]
    assert fault.value.retryable


async def test_json_is_decoded(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(streaming([b'{"a"', b": 1}"]))

    assert await ask_json(http, upstream.url) == {"a": 1}


@pytest.mark.parametrize(
    ("answer", "reported"),
    [
        (plain(200, b'{"a"'), "sent invalid JSON"),
        (plain(200, b"[" * 250 + b"]" * 250), "sent JSON that is nested too deeply"),
        (plain(200, b"[" * 450 + b"9" * 30 + b"]" * 450), "sent (invalid JSON|JSON that is nested too deeply)"),
        (plain(200, b""), "sent invalid JSON"),
        (plain(204), "sent invalid JSON"),
        (plain(200, b"[%b1]" % (b"1," * 600)), "sent a response of more than 1000 bytes"),
    ],
)
async def test_invalid_or_too_large_json_is_garbled(
    http: VendorHttp, upstream: Upstream, answer: Respond, reported: str
):
    upstream.respond_with(answer)

    with pytest.raises(Garbled, match=reported):
        await ask_json(http, upstream.url, limit_bytes=1000)


async def test_leaving_early_closes_the_connection(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(streaming([b"first"], end=hold))

    async with http.stream(Outgoing("acme", upstream.url)) as answer:
        assert await anext(answer.pieces()) == b"first"

    async with asyncio.timeout(5):
        await upstream.left.wait()


async def test_cancelling_closes_the_connection(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(hold)  # type: ignore[arg-type]

    async with background(ask(http, upstream.url)):
        await until(lambda: upstream.seen)

    async with asyncio.timeout(5):
        await upstream.left.wait()


async def test_connections_are_reused_after_complete_answers(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(plain(200, b"a"), refusing(400), streaming([b"b"]), plain(200, b"c"))

    await ask(http, upstream.url)
    await failing(http, upstream.url)
    for _ in range(2):
        await ask(http, upstream.url)

    assert len(upstream.seen) == 4
    assert upstream.connections == 1


async def test_rest_of_a_response_after_its_end_is_awaited_only_briefly(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(streaming([b"all"], end=hold))
    loop = asyncio.get_running_loop()

    async with http.stream(Outgoing("acme", upstream.url)) as answer:
        await anext(answer.pieces())
        begun = loop.time()
        await answer.drain()

    assert loop.time() - begun < 1


async def test_compressed_response_is_read(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(plain(200, compress(b"answer" * 99), Content_Encoding="gzip"))

    assert await ask(http, upstream.url) == b"answer" * 99


async def test_response_with_the_wrong_content_encoding_is_garbled(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(plain(200, b"answer", Content_Encoding="gzip"))

    assert isinstance(await failing(http, upstream.url), Garbled)


async def test_a_vendor_with_an_untrusted_certificate_is_unreachable(http: VendorHttp, sandbox: Running):
    fault = await failing(http, sandbox.broken_tls_url)

    assert isinstance(fault, Unreachable)
    assert fault.retryable


async def test_the_request_id_is_sent(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(plain())
    given = REQUEST_ID.set("r-1")
    try:
        await ask(http, upstream.url)
    finally:
        REQUEST_ID.reset(given)

    assert upstream.seen[0].headers["X-Request-Id"] == "r-1"


class Order(Model):
    id: str


async def test_response_of_another_form_is_an_error_that_names_the_field(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(plain(200, b'{"id": "1", "more": 2}'), plain(200, b'{"id": 1}'), plain(200, b"[]"))

    async def order() -> Order:
        async with http.stream(ReadCall("acme", upstream.url)) as answer:
            return await answer.value(Order)

    assert await order() == Order(id="1")
    with pytest.raises(Garbled, match="acme sent a malformed response: id must be a string"):
        await order()
    with pytest.raises(Garbled, match="malformed response: body must be an object"):
        await order()
