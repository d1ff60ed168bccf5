"""The undocumented parts of aiohttp's responses and of aiohttp-sse that `streams/sse.py` depends on."""

import asyncio
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from inspect import signature
from unittest.mock import AsyncMock

import pytest
from aiohttp import web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.helpers import rfc822_formatted_time
from aiohttp.test_utils import make_mocked_request
from aiohttp_sse import EventSourceResponse

from streams.sse import EventStream, ReaderGone
from tests.libraries.installed import lacking, version_fault

INHERITED = {
    "_req": "prepare() and _finish() set it",
    "_payload_writer": "prepare() and _finish() set it",
    "_chunked": "_push() and _write() read it for each event",
    "_keep_alive": "prepare() sets it",
    "_headers": "_make_head() writes them and prepare() clears them",
    "_eof_sent": "_finish() sets it",
}
PARAMETERS = {"headers", "allow_all_methods", "send_timeout"}
HEADERS = {"Content-Type": "text/event-stream", "X-Accel-Buffering": "no"}


def stream(headers: Mapping[str, str] | None = None) -> EventStream:
    return EventStream(headers or {}, send_timeout_s=1, ping_after_s=1)


def test_the_version_is_in_the_range_that_was_tested() -> None:
    assert version_fault("aiohttp-sse") is None


def test_a_response_has_the_attributes_that_are_set_and_read() -> None:
    response = EventSourceResponse()

    missing = [
        f"a response of aiohttp has no {name}: in streams/sse.py, {use}"
        for name, use in INHERITED.items()
        if not hasattr(response, name)
    ]
    assert missing == []
    assert lacking(web.RequestHandler, {"writing_paused": "streams/sse.py reads it for each event"}) == []


def test_the_constructor_takes_the_arguments_and_starts_nothing() -> None:
    assert set(signature(EventSourceResponse.__init__).parameters) >= PARAMETERS, "see EventStream.__init__()"

    response = stream({"X-Own": "1"})  # Outside of an event loop, a task cannot be created.

    assert {**HEADERS, "X-Own": "1"}.items() <= response.headers.items(), "aiohttp-sse sets other headers"
    assert response.headers is response._headers, (
        "aiohttp's responses keep their headers elsewhere than in _headers"
    )


def test_aiohttp_reads_the_state_that_is_set() -> None:
    response = stream()
    assert not response.prepared
    assert response.keep_alive is None

    response._payload_writer = make_mocked_request("GET", "/").writer
    assert response.prepared, "aiohttp's StreamResponse.prepared is not read from _payload_writer"
    response._payload_writer, response._eof_sent, response._keep_alive = None, True, True
    assert response.prepared, "aiohttp's StreamResponse.prepared is not read from _eof_sent"
    assert response.keep_alive, "aiohttp's StreamResponse.keep_alive is not read from _keep_alive"


async def test_the_end_of_a_response_leaves_the_same_state_as_a_stream() -> None:
    response = web.StreamResponse()
    await response.prepare(make_mocked_request("GET", "/"))
    await response.write_eof()

    left = response._eof_sent, response._req, response._payload_writer
    assert left == (True, None, None), (
        "write_eof() of aiohttp leaves another state than _finish() in streams/sse.py"
    )


async def test_aiohttp_ends_an_incomplete_stream_by_write_eof() -> None:
    handler = web.RequestHandler(web.Server(AsyncMock()), loop=asyncio.get_running_loop())
    request, response = make_mocked_request("GET", "/"), stream()
    response._payload_writer = request.writer
    with pytest.raises(ReaderGone):
        await response.write_eof()

    _, lost = await handler.finish_response(request, response, None)

    assert lost, "aiohttp does not end the connection when write_eof() raises a ConnectionError"


def test_a_writer_counts_what_was_sent() -> None:
    assert lacking(AbstractStreamWriter, {"output_size": "_take_head() in streams/sse.py adds to it"}) == []


def test_the_date_has_the_format_of_http() -> None:
    assert parsedate_to_datetime(rfc822_formatted_time()).tzname() == "UTC"
    assert rfc822_formatted_time().endswith(" GMT"), "aiohttp.helpers.rfc822_formatted_time has another format"
