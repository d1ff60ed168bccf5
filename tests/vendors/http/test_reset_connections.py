"""A call to a vendor that resets its connections is sent again only if it may be repeated."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from tests.vendors.http.http1.peers import WHOLE, request
from tests.vendors.http.http_calls import ask, failing
from vendors.errors import Unreachable
from vendors.http.outgoing import Outgoing, Repeat, RepeatWithKey
from vendors.http.transport import VendorHttp


@asynccontextmanager
async def resetting(*, after: int = 0) -> AsyncIterator[tuple[str, list[bytes]]]:
    """Run a vendor that answers the first `after` requests and resets all later connections. Yield the requests."""
    got: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                got.append(await request(reader))
                if len(got) > after:
                    break
                writer.write(WHOLE)
        writer.transport.abort()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/", got


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_vendor_that_resets_every_connection_is_called_twice(http: VendorHttp, method: str):
    async with resetting() as (url, got):
        fault = await failing(http, url, method=method)

    assert isinstance(fault, Unreachable)
    assert len(got) == 2


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_call_is_sent_once_unless_it_may_be_repeated(http: VendorHttp, method: str):
    async with resetting() as (url, got):
        with pytest.raises(Unreachable):
            async with http.stream(Outgoing("acme", url, method=method, body=b"question")):
                pass

    assert len(got) == 1


async def test_call_is_sent_once_if_an_idle_connection_is_lost_unless_it_may_be_repeated(
    http: VendorHttp,
):
    async with resetting(after=1) as (url, got):
        assert await ask(http, url) == b"ok"
        await failing(http, url, repeat=Repeat.NEVER)

    assert len(got) == 2


async def test_call_with_a_key_is_repeated_with_the_same_key(http: VendorHttp):
    async with resetting() as (url, got):
        await failing(http, url, repeat=RepeatWithKey("7:capture"))
        await failing(http, url, repeat=RepeatWithKey("7:refund", header="PayPal-Request-Id"))

    assert [b"\r\nIdempotency-Key: 7:capture\r\n" in head for head in got] == [True, True, False, False]
    assert [b"\r\nPayPal-Request-Id: 7:refund\r\n" in head for head in got] == [False, False, True, True]


async def test_a_reset_handshake_is_sent_twice(http: VendorHttp):
    async with resetting() as (url, got):
        with pytest.raises(Unreachable):
            async with http.websocket(Outgoing("acme", url, repeat=Repeat.SAFE)):
                pass
        assert len(got) == 2
        with pytest.raises(Unreachable):
            async with http.websocket(Outgoing("acme", url)):
                pass

    assert len(got) == 3


async def test_vendor_that_resets_idle_connections_too_is_called_at_most_three_times(http: VendorHttp):
    kept = 4
    async with resetting(after=kept) as (url, got):
        # All at once, so that each opens its own connection.
        assert await asyncio.gather(*(ask(http, url) for _ in range(kept))) == [b"ok"] * kept
        await failing(http, url, method="GET")

    assert kept + 2 <= len(got) <= kept + 3
