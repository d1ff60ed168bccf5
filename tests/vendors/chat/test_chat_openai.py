"""Chat completions from a vendor at a real socket: requests, output and ends."""

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.wire.codec import loads
from streams.wire.errors import InvalidParameter
from tests.streams.pieces import split
from tests.vendors.chat.openai_chat import DONE, MESSAGES, ROLE, USAGE, collect, event, finish, model, said, text
from tests.vendors.http.upstream import Upstream, cut, hold, refusing, running_upstream, streaming
from vendors.account import Account, ChatSpec
from vendors.chat.openai import OpenAIChat
from vendors.errors import Refused
from vendors.http.client import open_vendor_http
from vendors.http.transport import VendorHttp
from vendors.protocols import ChatItem, Finish, TextDelta, Usage


async def replied(http: VendorHttp, upstream: Upstream) -> list[ChatItem]:
    items: list[ChatItem] = []
    await collect(model(http, upstream), items)
    return items


async def test_whole_reply_gives_text_usage_and_finish(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(streaming([ROLE, text("Hel"), text("lo", obfuscation="aZ3"), finish(), USAGE, DONE]))

    items = await replied(http, upstream)

    assert said(items) == "Hello"
    assert items[-2:] == [Usage(9, 2), Finish("stop")]
    assert [item for item in items if isinstance(item, TextDelta) and not item.text] == []


async def test_request_contains_the_settings_of_the_strategy(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(streaming([finish(), DONE]))
    options = {"extra": {"top_p": 0.5, "user": "é"}}
    await collect(model(http, upstream, max_tokens=7, temperature=0.0, options=options), [])
    await collect(model(http, upstream, max_tokens=7, options={"token_field": "max_tokens"}), [])
    await collect(model(http, upstream, key=None), [])

    first, second, third = upstream.seen
    assert first.path == "/chat/completions"
    assert first.headers["Authorization"] == "Bearer k1"
    assert first.headers["Content-Type"] == "application/json"
    assert first.headers["Accept"] == "text/event-stream"
    assert loads(first.body) == {
        "model": "m1",
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_completion_tokens": 7,
        "temperature": 0.0,
        "top_p": 0.5,
        "user": "é",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Grüße"}],
    }
    assert loads(second.body)["max_tokens"] == 7
    assert "max_completion_tokens" not in loads(second.body)
    assert "Authorization" not in third.headers
    assert loads(third.body).keys() == {"model", "stream", "stream_options", "messages"}


def test_invalid_options_are_refused_when_the_client_is_created():
    account = Account("main", "vendor_b_llm", "http://x")

    with pytest.raises(InvalidParameter, match=r"token_field must be one of"):
        OpenAIChat(None, account, ChatSpec("m", {"token_field": "tokens"}))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("reason", "reported"),
    [
        ("stop", "stop"),
        ("length", "length"),
        ("content_filter", "content_filter"),
        ("tool_calls", "stop"),
        ("eos", "stop"),
        (["stop"], "stop"),
        (1, "stop"),
    ],
)
async def test_finish_reasons_are_mapped(http: VendorHttp, upstream: Upstream, reason: Any, reported: str):
    upstream.respond_with(streaming([text("a"), finish(reason), DONE]))

    assert (await replied(http, upstream))[-1] == Finish(reported)  # type: ignore[arg-type]


async def test_an_end_mark_without_a_finish_reason_is_a_normal_end(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(streaming([text("a"), DONE]))

    assert await replied(http, upstream) == [TextDelta("a"), Finish("stop")]


async def test_a_finish_reason_without_an_end_mark_is_a_normal_end(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(streaming([text("a"), finish("length")]))

    assert (await replied(http, upstream))[-1] == Finish("length")


async def test_cut_after_the_finish_reason_only_loses_the_usage(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(streaming([text("a"), finish("length")], end=cut, apart=True))

    assert await replied(http, upstream) == [TextDelta("a"), Finish("length")]


async def test_connection_that_stays_open_after_the_end_mark_does_not_delay_the_end(
    http: VendorHttp, upstream: Upstream
):
    upstream.respond_with(streaming([text("a"), finish(), USAGE, DONE], end=hold))

    async with asyncio.timeout(2):
        assert await replied(http, upstream) == [TextDelta("a"), Usage(9, 2), Finish("stop")]


@pytest.mark.parametrize(
    "chunk",
    [
        event(choices=[], prompt_filter_results=[{"x": 1}]),
        event(choices=None),
        event(id="x", object="chat.completion.chunk"),
        event(choices=[{"index": 0}]),
        event(choices=[{"index": 0, "delta": None, "finish_reason": None}]),
        event(choices=[{"index": 0, "delta": {"tool_calls": [{"index": 0}], "reasoning_content": "hm"}}]),
        event(choices=[], usage=None),
        event(choices=[], usage={"prompt_tokens": "9"}),
        event(choices=[], error=None),
        b": keep-alive\n\n",
        b"event: ping\n\n",
    ],
)
async def test_chunks_without_text_are_ignored(http: VendorHttp, upstream: Upstream, chunk: bytes):
    upstream.respond_with(streaming([chunk, text("a"), chunk, text("b"), finish(), chunk, DONE]))

    items = await replied(http, upstream)

    assert said(items) == "ab"
    assert items[-1] == Finish("stop")
    assert not [item for item in items if isinstance(item, Usage)]


async def test_explicit_zero_of_usage_stays_zero(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(
        streaming([text("a"), finish(), event(choices=[], usage={"prompt_tokens": 0, "completion_tokens": 0})])
    )

    assert Usage(0, 0) in await replied(http, upstream)


async def test_refusal_of_the_model_is_text(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(
        streaming([event(choices=[{"delta": {"content": None, "refusal": "I cannot."}}]), finish(), DONE])
    )

    assert said(await replied(http, upstream)) == "I cannot."


async def test_type_of_an_event_stream_may_have_parameters_and_capitals(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(streaming([text("a"), DONE], content_type="Text/Event-Stream; charset=UTF-8"))

    assert said(await replied(http, upstream)) == "a"


async def test_empty_reply_has_only_its_end(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(streaming([ROLE, finish("content_filter"), USAGE, DONE]))

    assert await replied(http, upstream) == [Usage(9, 2), Finish("content_filter")]


async def test_refusals_are_raised_when_the_reply_is_opened(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(refusing(401, "Incorrect API key", "invalid_api_key"))

    with pytest.raises(Refused, match=r"^backend unavailable: vendor_b_llm answered 401: Incorrect API key$"):
        async with model(http, upstream).reply(MESSAGES):
            raise AssertionError


async def test_temporary_refusal_is_retried_once(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(refusing(503, retry_after_ms="5"), streaming([text("a"), DONE]))

    assert said(await replied(http, upstream)) == "a"
    assert upstream.seen[0].body == upstream.seen[1].body


async def test_reader_that_leaves_early_closes_the_vendors_connection(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(streaming([text("a")], end=hold))

    async with model(http, upstream).reply(MESSAGES) as items:
        assert await anext(items) == TextDelta("a")
    async with asyncio.timeout(5):
        await upstream.left.wait()
    with pytest.raises(StopAsyncIteration):
        await anext(items)


async def test_error_of_the_reader_is_raised_unchanged_and_closes_the_connection(
    http: VendorHttp, upstream: Upstream
):
    upstream.respond_with(streaming([text("a")], end=hold))

    async def read() -> None:
        async with model(http, upstream).reply(MESSAGES) as items:
            async for _ in items:
                raise LookupError

    with pytest.raises(LookupError):
        await read()
    async with asyncio.timeout(5):
        await upstream.left.wait()


async def test_connections_are_reused_after_complete_replies(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(streaming([text("a"), finish(), USAGE, DONE]), streaming([text("b"), DONE], apart=True))

    for _ in range(4):
        await replied(http, upstream)

    assert upstream.connections == 1


@given(st.lists(st.text(min_size=1, max_size=5), max_size=6), st.lists(st.integers(0, 900), max_size=8))
def test_every_split_gives_the_same_text(words: list[str], at: list[int]):
    stream = b"".join([ROLE, *map(text, words), finish(), USAGE, DONE])

    async def play() -> list[ChatItem]:
        async with open_vendor_http() as http, running_upstream() as upstream:
            upstream.respond_with(streaming([piece for piece in split(stream, at) if piece]))
            return await replied(http, upstream)

    items = asyncio.run(play())

    assert said(items) == "".join(words)
    assert items[-2:] == [Usage(9, 2), Finish("stop")]


async def test_second_choice_is_ignored(http: VendorHttp, upstream: Upstream) -> None:
    second = event(choices=[{"index": 1, "delta": {"content": "other"}, "finish_reason": None}])
    upstream.respond_with(streaming([text("one"), second, finish(), DONE]))

    items = await replied(http, upstream)

    assert "".join(item.text for item in items if isinstance(item, TextDelta)) == "one"
