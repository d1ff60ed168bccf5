"""Bodies of calls to vendors are sent once and completely."""

from collections.abc import AsyncIterator

import pytest

from streams.wire.errors import InvalidParameter
from tests.vendors.http.http_calls import SHORT, ask, failing
from tests.vendors.http.upstream import Upstream, plain, refusing
from vendors.http.transport import VendorHttp


async def streamed(*pieces: bytes, fault: Exception | None = None) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece
    if fault is not None:
        raise fault


async def test_a_streamed_body_is_sent_once(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(plain(200, b"answer"), refusing(503, **SHORT), plain())

    assert await ask(http, upstream.url, body=streamed(b"one ", b"", b"two")) == b"answer"
    await failing(http, upstream.url, body=streamed(b"three"))

    assert [seen.body for seen in upstream.seen] == [b"one two", b"three"]


async def test_error_of_the_body_iterable_is_raised_unchanged(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(plain())

    with pytest.raises(InvalidParameter, match="the audio is no audio"):
        await ask(http, upstream.url, body=streamed(b"part", fault=InvalidParameter("the audio is no audio")))

    assert upstream.seen == []


@pytest.mark.parametrize("size", [70_000, 3 << 20])
async def test_large_body_is_sent_completely(http: VendorHttp, upstream: Upstream, size: int):
    upstream.respond_with(plain(200, b"answer"))
    large = bytes(range(256)) * (size // 256)

    assert await ask(http, upstream.url, body=large) == b"answer"
    assert upstream.seen[0].body == large
