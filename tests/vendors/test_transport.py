"""Vendors over HTTP, at a real socket: what is tried again, what is told of a fault, what is closed."""

import asyncio
import socket
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from gzip import compress
from typing import Any

import pytest

from streams.wire.codec import dumps
from streams.wire.errors import ConfigInvalid, InvalidParameter
from streams.wire.ids import REQUEST_ID
from tests.vendors.upstream import Answer, Upstream, cut, hold, plain, refusing, streaming
from vendors.errors import Garbled, Refused, TimedOut, Unreachable, VendorError
from vendors.refusals import refusal
from vendors.sandbox.server import Running
from vendors.transport import Incoming, Outgoing, VendorHttp

SHORT = {"retry_after_ms": "10"}
"""Headers of an answer after which the second try comes soon."""


async def ask(http: VendorHttp, url: str, **fields: Any) -> bytes:
    call = Outgoing("acme", url, **{"headers": {"Authorization": "Bearer k"}, "body": b"question", **fields})
    async with http.stream(call) as answer:
        return b"".join([piece async for piece in answer.pieces()])


async def collect(answer: Incoming, into: list[bytes]) -> None:
    async for piece in answer.pieces():
        into.append(piece)  # noqa: PERF401 - kept when reading fails, too


async def ask_json(http: VendorHttp, url: str, **limits: int) -> Any:
    async with http.stream(Outgoing("acme", url)) as answer:
        return await answer.json(**limits)


async def failing(http: VendorHttp, url: str, **fields: Any) -> VendorError:
    """The fault of a call that must fail."""
    with pytest.raises(VendorError) as fault:
        await ask(http, url, **fields)
    assert fault.value.vendor == "acme"
    assert fault.value.error_type == "backend unavailable"
    return fault.value


async def test_question_goes_out_and_answer_comes_back(http: VendorHttp, upstream: Upstream):
    upstream.will(streaming([b"one ", b"two"], content_type="Text/Plain; charset=utf-8"))

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
    assert str(fault) == "backend unavailable: acme was not reached"


async def test_connection_that_ends_before_an_answer_is_tried_once_more(http: VendorHttp):
    connections = 0

    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        await reader.readuntil(b"question")
        writer.close()

    async with await asyncio.start_server(hang_up, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        fault = await failing(http, url)
        assert connections == 2
        await failing(http, url, repeatable=False)

    assert isinstance(fault, Unreachable)
    assert connections == 3


async def test_what_is_no_http_is_garbled(http: VendorHttp):
    async def chatter(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 mail.example ESMTP\r\n\r\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(chatter, "127.0.0.1", 0) as server:
        fault = await failing(http, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/")

    assert isinstance(fault, Garbled)


async def test_connection_that_does_not_open_in_time_is_not_tried_again(http: VendorHttp):
    loop = asyncio.get_running_loop()
    with socket.socket() as full, socket.socket() as first, socket.socket() as second:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for taken in (first, second):
            taken.setblocking(False)
            taken.connect_ex(full.getsockname())
        begun = loop.time()

        fault = await failing(http, f"http://127.0.0.1:{full.getsockname()[1]}/", connect_s=0.1)

    assert isinstance(fault, TimedOut)
    assert 0.09 < loop.time() - begun < 0.2


@pytest.mark.parametrize("url", ["http://", "http://[::1", "acme", "http://acme.invalid:99999/"])
async def test_address_that_is_none_is_told_and_not_tried_again(http: VendorHttp, url: str):
    fault = await failing(http, url)

    assert isinstance(fault, Unreachable)
    assert not fault.retryable


async def test_key_that_http_cannot_send_is_a_fault_of_the_config(http: VendorHttp, upstream: Upstream):
    upstream.will(plain())

    with pytest.raises(ConfigInvalid, match=r"^config_invalid: acme: its key") as fault:
        await ask(http, upstream.url, headers={"Authorization": "Bearer secret\n"})

    assert "secret" not in str(fault.value)
    assert upstream.seen == []


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422, 501])
async def test_refusal_that_would_come_again_is_not_tried_again(http: VendorHttp, upstream: Upstream, status: int):
    upstream.will(refusing(status, "that\n is   wrong", "a_code", retry_after="0"))

    fault = await failing(http, upstream.url)

    assert isinstance(fault, Refused)
    assert str(fault) == f"backend unavailable: acme answered {status}: that is wrong"
    assert (fault.status, fault.retryable, fault.extra) == (status, False, {"code": "a_code"})
    assert len(upstream.seen) == 1


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504, 529])
async def test_refusal_that_may_pass_is_tried_once_more(http: VendorHttp, upstream: Upstream, status: int):
    upstream.will(refusing(status, **SHORT), plain(200, b"answer"))

    assert await ask(http, upstream.url) == b"answer"
    assert [seen.body for seen in upstream.seen] == [b"question", b"question"]


async def test_second_refusal_is_the_last(http: VendorHttp, upstream: Upstream):
    upstream.will(refusing(500, "first", **SHORT), refusing(503, "second", **SHORT), plain())

    fault = await failing(http, upstream.url)

    assert str(fault) == "backend unavailable: acme answered 503: second"
    assert fault.retryable
    assert len(upstream.seen) == 2


async def test_call_that_must_not_be_repeated_is_not(http: VendorHttp, upstream: Upstream):
    upstream.will(refusing(503, **SHORT), plain())

    await failing(http, upstream.url, repeatable=False)

    assert len(upstream.seen) == 1


@pytest.mark.parametrize("headers", [{"Retry_After": "0.15"}, {"retry_after_ms": "150", "Retry_After": "9"}])
async def test_time_that_the_vendor_asks_for_is_waited(
    http: VendorHttp, upstream: Upstream, headers: dict[str, str]
):
    upstream.will(refusing(429, **headers), plain(200, b"answer"))
    loop = asyncio.get_running_loop()
    begun = loop.time()

    assert await ask(http, upstream.url) == b"answer"

    assert 0.14 < loop.time() - begun < 1


async def test_without_such_a_time_the_second_try_comes_soon(http: VendorHttp, upstream: Upstream):
    upstream.will(refusing(500), plain(200, b"answer"))
    loop = asyncio.get_running_loop()
    begun = loop.time()

    await ask(http, upstream.url)

    assert 0.04 < loop.time() - begun < 1


@pytest.mark.parametrize("headers", [{"Retry_After": "2.1"}, {"Retry_After": "60"}, {"retry_after_ms": "2001"}])
async def test_longer_time_is_left_to_the_next_strategy(
    http: VendorHttp, upstream: Upstream, headers: dict[str, str]
):
    upstream.will(refusing(429, **headers), plain())

    fault = await failing(http, upstream.url)

    assert fault.retryable
    assert fault.retry_after_s is not None
    assert fault.retry_after_s > 2
    assert len(upstream.seen) == 1


async def test_money_that_ran_out_is_not_asked_for_again(http: VendorHttp, upstream: Upstream):
    upstream.will(refusing(429, "You exceeded your current quota", "insufficient_quota", **SHORT))

    fault = await failing(http, upstream.url)

    assert not fault.retryable
    assert len(upstream.seen) == 1


async def test_words_of_an_error_are_read_whole_though_they_come_in_pieces(http: VendorHttp, upstream: Upstream):
    body = dumps({"error": {"message": "no money", "type": "insufficient_quota", "code": None}})
    upstream.will(
        streaming([body[:9], body[9:30], body[30:]], status=429, content_type="application/json", apart=True)
    )

    fault = await failing(http, upstream.url)

    assert str(fault) == "backend unavailable: acme answered 429: no money"
    assert len(upstream.seen) == 1


@pytest.mark.parametrize("end", [cut, hold])
async def test_status_of_an_error_is_told_however_its_body_ends(http: VendorHttp, upstream: Upstream, end: Any):
    upstream.will(streaming([b'{"error": {"mess'], status=401, end=end))

    fault = await failing(http, upstream.url)

    assert isinstance(fault, Refused)
    assert str(fault) == "backend unavailable: acme answered 401"
    assert not fault.retryable


async def test_endless_error_is_not_read_to_its_end(http: VendorHttp, upstream: Upstream):
    upstream.will(streaming([b"x" * 1000] * 10_000, status=400))

    assert str(await failing(http, upstream.url)) == "backend unavailable: acme answered 400"
    async with asyncio.timeout(5):
        await upstream.left.wait()


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_redirect_is_not_followed(http: VendorHttp, upstream: Upstream, status: int):
    upstream.will(plain(status, Location=f"{upstream.url}/elsewhere"), plain(200, b"answer"))

    fault = await failing(http, upstream.url)

    assert (fault.status, fault.retryable) == (status, False)
    assert len(upstream.seen) == 1


@pytest.mark.parametrize(
    ("raw", "told", "code"),
    [
        (b'{"error": "plain words"}', ": plain words", None),
        (b'{"message": "without a frame", "code": 7}', ": without a frame", "7"),
        (b'{"error": {"message": "m", "type": "t", "code": null}}', ": m", "t"),
        (b'{"error": {"message": null}}', "", None),
        (b'{"error": {"message": "%b"}}' % (b"x" * 999), ": " + "x" * 200, None),
        (b"[]", "", None),
        (b"<html>Bad Gateway</html>", "", None),
        (b"", "", None),
        (b"\xff\xfe", "", None),
    ],
)
def test_words_of_a_vendor_are_told_where_they_are_short_and_plain(raw: bytes, told: str, code: str | None):
    fault = refusal("acme", 400, raw, {})

    assert str(fault) == f"backend unavailable: acme answered 400{told}"
    assert fault.extra.get("code") == code


def test_missing_engine_is_a_fault_of_the_config():
    fault = refusal("acme", 503, b'{"error": {"message": "install piper", "code": "engine_missing"}}', {})

    assert isinstance(fault, ConfigInvalid)
    assert str(fault) == "config_invalid: acme: install piper"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"Retry-After": "7"}, 7),
        ({"Retry-After": "0.5"}, 0.5),
        ({"Retry-After": "-3"}, 0),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": ""}, None),
        ({"Retry-After": "nan"}, None),
        ({"Retry-After": "inf"}, None),
        ({"Retry-After": "Fri, 21 Nov 2014 10:00:00 GMT"}, 0),
        ({"retry-after-ms": "250"}, 0.25),
        ({"retry-after-ms": "nan"}, None),
    ],
)
def test_time_to_wait_is_a_sound_number_or_none(headers: dict[str, str], seconds: float | None):
    assert refusal("acme", 429, b"", headers).retry_after_s == seconds


def test_time_to_wait_may_be_a_date():
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)

    seconds = refusal("acme", 429, b"", {"Retry-After": date}).retry_after_s

    assert seconds is not None
    assert 28 < seconds <= 30


@pytest.mark.parametrize("headers", [{}, {"Content-Length": "100"}])
async def test_answer_that_is_cut_is_no_end(http: VendorHttp, headers: dict[str, str]):
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
    upstream.will(streaming([b'{"a"', b": 1}"]))

    assert await ask_json(http, upstream.url) == {"a": 1}


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (plain(200, b'{"a"'), "answered with broken JSON"),
        (plain(200, b""), "answered with broken JSON"),
        (plain(204), "answered with broken JSON"),
        (plain(200, b"[%b1]" % (b"1," * 600)), "answered with more than is allowed"),
    ],
)
async def test_what_is_no_json_or_too_much_is_garbled(
    http: VendorHttp, upstream: Upstream, answer: Answer, told: str
):
    upstream.will(answer)

    with pytest.raises(Garbled, match=told):
        await ask_json(http, upstream.url, limit_bytes=1000)


async def test_leaving_early_closes_the_connection(http: VendorHttp, upstream: Upstream):
    upstream.will(streaming([b"first"], end=hold))

    async with http.stream(Outgoing("acme", upstream.url)) as answer:
        assert await anext(answer.pieces()) == b"first"

    async with asyncio.timeout(5):
        await upstream.left.wait()


async def test_cancelling_closes_the_connection(http: VendorHttp, upstream: Upstream):
    upstream.will(hold)  # type: ignore[arg-type]

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await ask(http, upstream.url)

    async with asyncio.timeout(5):
        await upstream.left.wait()


async def test_connection_is_used_again_after_whole_answers(http: VendorHttp, upstream: Upstream):
    upstream.will(plain(200, b"a"), refusing(500, **SHORT), streaming([b"b"]), plain(200, b"c"))

    for _ in range(3):
        await ask(http, upstream.url)

    assert len(upstream.seen) == 4
    assert upstream.connections == 1


async def test_rest_behind_the_end_of_an_answer_is_waited_for_only_briefly(http: VendorHttp, upstream: Upstream):
    upstream.will(streaming([b"all"], end=hold))
    loop = asyncio.get_running_loop()

    async with http.stream(Outgoing("acme", upstream.url)) as answer:
        await anext(answer.pieces())
        begun = loop.time()
        await answer.rest()

    assert loop.time() - begun < 1


async def spoken(*pieces: bytes, fault: Exception | None = None) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece
    if fault is not None:
        raise fault


async def test_body_may_be_sent_as_it_is_made_and_is_not_sent_twice(http: VendorHttp, upstream: Upstream):
    upstream.will(plain(200, b"answer"), refusing(503, **SHORT), plain())

    assert await ask(http, upstream.url, body=spoken(b"one ", b"", b"two")) == b"answer"
    await failing(http, upstream.url, body=spoken(b"three"))

    assert [seen.body for seen in upstream.seen] == [b"one two", b"three"]


async def test_fault_of_who_makes_the_body_is_told_as_it_is(http: VendorHttp, upstream: Upstream):
    upstream.will(plain())

    with pytest.raises(InvalidParameter, match="the audio is no audio"):
        await ask(http, upstream.url, body=spoken(b"part", fault=InvalidParameter("the audio is no audio")))

    assert upstream.seen == []


@pytest.mark.parametrize("size", [70_000, 3 << 20])
async def test_large_question_goes_out_whole(http: VendorHttp, upstream: Upstream, size: int):
    upstream.will(plain(200, b"answer"))
    large = bytes(range(256)) * (size // 256)

    assert await ask(http, upstream.url, body=large) == b"answer"
    assert upstream.seen[0].body == large


async def test_answer_that_is_compressed_is_read_all_the_same(http: VendorHttp, upstream: Upstream):
    upstream.will(plain(200, compress(b"answer" * 99), Content_Encoding="gzip"))

    assert await ask(http, upstream.url) == b"answer" * 99


async def test_answer_that_is_not_compressed_as_it_tells_is_garbled(http: VendorHttp, upstream: Upstream):
    upstream.will(plain(200, b"answer", Content_Encoding="gzip"))

    assert isinstance(await failing(http, upstream.url), Garbled)


async def test_vendor_that_is_not_trusted_is_unreachable(http: VendorHttp, sandbox: Running):
    fault = await failing(http, sandbox.broken_tls_url)

    assert isinstance(fault, Unreachable)
    assert fault.retryable


async def test_id_of_the_request_goes_along(http: VendorHttp, upstream: Upstream):
    upstream.will(plain())
    given = REQUEST_ID.set("r-1")
    try:
        await ask(http, upstream.url)
    finally:
        REQUEST_ID.reset(given)

    assert upstream.seen[0].headers["X-Request-Id"] == "r-1"
