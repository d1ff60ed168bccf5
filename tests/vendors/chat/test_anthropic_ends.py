"""Ends and errors of Anthropic's answers."""

import pytest

from streams.wire.codec import dumps
from tests.vendors.chat.anthropic_events import (
    START,
    STOP,
    USER,
    collect,
    event,
    model,
    read,
    replied,
    said,
    stopped,
    text,
)
from tests.vendors.http.upstream import Upstream, cut, plain, streaming
from vendors.errors import Garbled, Refused, VendorError
from vendors.http.transport import VendorHttp
from vendors.protocols import ChatItem, Finish, TextDelta, Usage


@pytest.mark.parametrize(("kind", "retryable"), [("overloaded_error", True), ("invalid_request_error", False)])
async def test_errors_within_the_answer_are_raised_after_its_text(
    http: VendorHttp, upstream: Upstream, kind: str, *, retryable: bool
):
    error = event("error", error={"type": kind, "message": "too\n much"})
    upstream.respond_with(streaming([START + text("Hel") + error + text("lo")]))
    items: list[ChatItem] = []

    with pytest.raises(Refused, match="anthropic broke off with an error: too much") as fault:
        await collect(model(http, upstream), USER, items)

    assert items == [TextDelta("Hel")]
    assert (fault.value.retryable, fault.value.extra) == (retryable, {"code": kind})


def test_a_malformed_event_is_an_error():
    words, _, _, done, fault = read([START + text("a") + b"data: {\n\n" + text("b") + STOP])

    assert (words, done) == ("a", False)
    assert "anthropic sent an event that is not JSON" in fault


def test_an_error_of_any_shape_is_an_error():
    words, _, _, done, fault = read([START + text("a") + event("error", error="x") + text("b") + STOP])

    assert (words, done) == ("a", False)
    assert "anthropic broke off with an error: x" in fault


async def test_a_stream_without_its_end_is_an_error(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(streaming([START, text("Hel")]), streaming([START, text("Hel")], end=cut))

    with pytest.raises(Garbled, match="without a final event"):
        await replied(model(http, upstream))
    with pytest.raises(VendorError) as fault:
        await replied(model(http, upstream))
    assert fault.value.retryable


async def test_text_with_a_stop_reason_is_complete(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(streaming([START, text("Hello"), stopped("max_tokens")], end=cut))

    assert (await replied(model(http, upstream)))[1:] == [Usage(25, 15), Finish("length")]


async def test_overloaded_vendors_are_called_once_more(http: VendorHttp, upstream: Upstream):
    body = dumps({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})
    upstream.respond_with(plain(529, body), streaming([START, text("a"), stopped("end_turn"), STOP]))

    assert said(await replied(model(http, upstream))) == "a"


async def test_an_answer_that_is_not_an_event_stream_is_an_error(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(plain(200, b"<html>", Content_Type="text/html"))

    with pytest.raises(Garbled, match="answered with text/html"):
        await replied(model(http, upstream))
