"""Refusals of vendors over HTTP: which calls are retried and when, and what is reported."""

import asyncio
from datetime import timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from streams.wire.codec import dumps
from streams.wire.errors import ConfigInvalid
from tests.calendar.clock import utc_now
from tests.vendors.http.http_calls import SHORT, ask, failing
from tests.vendors.http.upstream import Upstream, cut, hold, plain, refusing, streaming
from vendors.errors import Refused
from vendors.http.outgoing import Repeat
from vendors.http.refusals import refusal
from vendors.http.transport import VendorHttp


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422, 501])
async def test_permanent_refusal_is_not_retried(http: VendorHttp, upstream: Upstream, status: int):
    upstream.respond_with(refusing(status, "that\n is   wrong", "a_code", retry_after="0"))

    fault = await failing(http, upstream.url)

    assert isinstance(fault, Refused)
    assert str(fault) == f"backend unavailable: acme answered {status}: that is wrong"
    assert (fault.vendor_status, fault.retryable, fault.extra) == (status, False, {"code": "a_code"})
    assert len(upstream.seen) == 1


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504, 529])
async def test_temporary_refusal_is_retried_once(http: VendorHttp, upstream: Upstream, status: int):
    upstream.respond_with(refusing(status, **SHORT), plain(200, b"answer"))

    assert await ask(http, upstream.url) == b"answer"
    assert [seen.body for seen in upstream.seen] == [b"question", b"question"]


async def test_call_is_not_retried_after_the_second_refusal(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(refusing(500, "first", **SHORT), refusing(503, "second", **SHORT), plain())

    fault = await failing(http, upstream.url)

    assert str(fault) == "backend unavailable: acme answered 503: second"
    assert fault.retryable
    assert len(upstream.seen) == 2


async def test_call_that_must_not_be_repeated_is_not_retried(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(refusing(503, **SHORT), plain())

    await failing(http, upstream.url, repeat=Repeat.NEVER)

    assert len(upstream.seen) == 1


@pytest.mark.parametrize("headers", [{"Retry_After": "0.15"}, {"retry_after_ms": "150", "Retry_After": "9"}])
async def test_retry_waits_for_the_time_that_the_vendor_requests(
    http: VendorHttp, upstream: Upstream, headers: dict[str, str]
):
    upstream.respond_with(refusing(429, **headers), plain(200, b"answer"))
    loop = asyncio.get_running_loop()
    begun = loop.time()

    assert await ask(http, upstream.url) == b"answer"

    assert 0.14 < loop.time() - begun < 1


async def test_retry_is_made_soon_if_the_vendor_requests_no_time(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(refusing(500), plain(200, b"answer"))
    loop = asyncio.get_running_loop()
    begun = loop.time()

    await ask(http, upstream.url)

    assert 0.04 < loop.time() - begun < 1


@pytest.mark.parametrize("headers", [{"Retry_After": "2.1"}, {"Retry_After": "60"}, {"retry_after_ms": "2001"}])
async def test_call_is_not_retried_if_the_requested_time_is_too_long(
    http: VendorHttp, upstream: Upstream, headers: dict[str, str]
):
    upstream.respond_with(refusing(429, **headers), plain())

    fault = await failing(http, upstream.url)

    assert fault.retryable
    assert fault.retry_after_s is not None
    assert fault.retry_after_s > 2
    assert len(upstream.seen) == 1


async def test_call_is_not_retried_if_the_quota_is_used_up(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(refusing(429, "You exceeded your current quota", "insufficient_quota", **SHORT))

    fault = await failing(http, upstream.url)

    assert not fault.retryable
    assert len(upstream.seen) == 1


async def test_message_of_an_error_that_arrives_in_pieces_is_complete(http: VendorHttp, upstream: Upstream):
    body = dumps({"error": {"message": "no money", "type": "insufficient_quota", "code": None}})
    upstream.respond_with(
        streaming([body[:9], body[9:30], body[30:]], status=429, content_type="application/json", apart=True)
    )

    fault = await failing(http, upstream.url)

    assert str(fault) == "backend unavailable: acme answered 429: no money"
    assert len(upstream.seen) == 1


@pytest.mark.parametrize("end", [cut, hold])
async def test_the_status_of_an_error_is_reported_for_any_body(http: VendorHttp, upstream: Upstream, end: Any):
    upstream.respond_with(streaming([b'{"error": {"mess'], status=401, end=end))

    fault = await failing(http, upstream.url)

    assert isinstance(fault, Refused)
    assert str(fault) == "backend unavailable: acme answered 401"
    assert not fault.retryable


async def test_endless_error_bodies_are_not_read_completely(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(streaming([b"x" * 1000] * 10_000, status=400))

    assert str(await failing(http, upstream.url)) == "backend unavailable: acme answered 400"
    async with asyncio.timeout(5):
        await upstream.left.wait()


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_redirect_is_not_followed(http: VendorHttp, upstream: Upstream, status: int):
    upstream.respond_with(plain(status, Location=f"{upstream.url}/elsewhere"), plain(200, b"answer"))

    fault = await failing(http, upstream.url)

    assert (fault.vendor_status, fault.retryable) == (status, False)
    assert len(upstream.seen) == 1


@pytest.mark.parametrize(
    ("raw", "reported", "code"),
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
def test_message_of_a_vendor_is_reported_if_it_is_short_and_plain(raw: bytes, reported: str, code: str | None):
    fault = refusal("acme", 400, raw, {})

    assert str(fault) == f"backend unavailable: acme answered 400{reported}"
    assert fault.extra.get("code") == code


def test_missing_engine_is_an_error_of_the_config():
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
def test_time_to_wait_is_a_valid_number_or_none(headers: dict[str, str], seconds: float | None):
    assert refusal("acme", 429, b"", headers).retry_after_s == seconds


def test_retry_after_may_be_a_date():
    date = format_datetime(utc_now() + timedelta(seconds=30), usegmt=True)

    seconds = refusal("acme", 429, b"", {"Retry-After": date}).retry_after_s

    assert seconds is not None
    assert 28 < seconds <= 30
