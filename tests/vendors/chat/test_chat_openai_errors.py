"""Chat completions that break off, are malformed or contain an error, from a vendor at a real socket."""

from typing import Any

import pytest

from tests.vendors.chat.openai_chat import DONE, ROLE, collect, event, finish, model, said, text
from tests.vendors.http.upstream import Upstream, cut, plain, streaming
from vendors.errors import Garbled, Refused, VendorError
from vendors.http.transport import VendorHttp
from vendors.protocols import ChatItem, TextDelta


async def broken(http: VendorHttp, upstream: Upstream) -> tuple[str, VendorError]:
    """Return the text before the error, and the error."""
    items: list[ChatItem] = []
    with pytest.raises(VendorError) as fault:
        await collect(model(http, upstream), items)
    assert all(isinstance(item, TextDelta) for item in items), "no end behind a fault"
    return said(items), fault.value


@pytest.mark.parametrize("chunk", [b"data: {no json\n\n", b"data: \xff\n\n", b'data: {"choices": [{"del\n\n'])
@pytest.mark.parametrize("before", [b"", text("before")])
async def test_malformed_frames_are_garbled_after_the_preceding_text(
    http: VendorHttp, upstream: Upstream, before: bytes, chunk: bytes
):
    upstream.respond_with(streaming([before + chunk + text("never"), finish(), DONE]))

    seen, fault = await broken(http, upstream)

    assert seen == ("before" if before else "")
    assert isinstance(fault, Garbled)
    assert str(fault) == "backend unavailable: vendor_b_llm sent an event that is not JSON"


@pytest.mark.parametrize(
    ("error", "reported"),
    [
        ({"message": "overloaded", "type": "server_error", "code": None}, "overloaded"),
        ("plain", "plain"),
        ({"type": "server_error"}, "server_error"),
    ],
)
@pytest.mark.parametrize("apart", [True, False])
async def test_errors_inside_a_200_are_raised_after_the_preceding_text(
    http: VendorHttp, upstream: Upstream, error: Any, reported: str, *, apart: bool
):
    pieces = [text("be"), text("fore"), event(error=error)]
    upstream.respond_with(streaming(pieces if apart else [b"".join(pieces)], apart=apart))

    seen, fault = await broken(http, upstream)

    assert seen == "before"
    assert isinstance(fault, Refused)
    assert str(fault) == f"backend unavailable: vendor_b_llm broke off with an error: {reported}"


async def test_an_error_before_any_text_is_raised_despite_an_end_mark(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(streaming([ROLE, event(error={"message": "x" * 999}), DONE]))

    seen, fault = await broken(http, upstream)

    assert seen == ""
    assert len(str(fault)) < 300


@pytest.mark.parametrize("pieces", [[], [ROLE], [text("half")], [text("half"), b"data: {"]])
async def test_stream_that_ends_without_its_end_mark_is_garbled(
    http: VendorHttp, upstream: Upstream, pieces: list[bytes]
):
    upstream.respond_with(streaming(pieces))

    seen, fault = await broken(http, upstream)

    assert seen == ("half" if text("half") in pieces else "")
    assert isinstance(fault, Garbled)
    assert fault.retryable
    assert "without a final event" in str(fault)


@pytest.mark.parametrize("pieces", [[], [text("half")], [text("half"), b"data: {"]])
async def test_a_truncated_stream_is_garbled(http: VendorHttp, upstream: Upstream, pieces: list[bytes]):
    upstream.respond_with(streaming(pieces, end=cut, apart=True))

    seen, fault = await broken(http, upstream)

    assert seen == ("half" if pieces else "")
    assert isinstance(fault, Garbled)
    assert str(fault) == "backend unavailable: vendor_b_llm broke off its answer"
    assert fault.retryable


@pytest.mark.parametrize("content_type", ["application/json", "text/html", "text/plain; charset=utf-8"])
async def test_answers_of_an_unexpected_type_are_garbled(http: VendorHttp, upstream: Upstream, content_type: str):
    upstream.respond_with(plain(200, b'{"error": {"message": "busy"}}', Content_Type=content_type))

    seen, fault = await broken(http, upstream)

    assert seen == ""
    assert isinstance(fault, Garbled)
    assert f"answered with {content_type.partition(';')[0]}, not an event stream" in str(fault)


@pytest.mark.parametrize(
    "choice", [{"finish_reason": "error"}, {"error": {"message": "overloaded"}, "finish_reason": None}]
)
async def test_a_choice_that_ends_in_an_error_is_an_error(
    http: VendorHttp, upstream: Upstream, choice: dict[str, Any]
) -> None:
    wrong = event(choices=[{"index": 0, "delta": {}, **choice}])
    upstream.respond_with(streaming([text("half"), wrong, DONE]))

    seen, fault = await broken(http, upstream)

    assert seen == "half"
    assert isinstance(fault, Refused)
