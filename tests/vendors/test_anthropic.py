"""Anthropic's Messages protocol: requests, responses for every split, ends and errors."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from streams.wire.codec import dumps, loads
from streams.wire.errors import InvalidParameter
from tests.streams.pieces import by_byte, split
from tests.vendors.upstream import Upstream, cut, plain, streaming
from vendors.account import Account, ChatSpec
from vendors.chat.anthropic import AnthropicChat, AnthropicReply
from vendors.errors import Garbled, Refused, VendorError
from vendors.protocols import ChatItem, ChatMessage, Finish, TextDelta, Usage
from vendors.transport import VendorHttp

USER = [ChatMessage("user", "Grüße")]
UNFINISHED = [*USER, ChatMessage("assistant", "Hello, \n")]


def event(kind: str, **fields: Any) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), dumps({"type": kind, **fields}))


def text(content: Any) -> bytes:
    return event("content_block_delta", index=0, delta={"type": "text_delta", "text": content})


def stopped(reason: Any, *, output_tokens: int = 15) -> bytes:
    delta = {"stop_reason": reason, "stop_sequence": None}
    return event("message_delta", delta=delta, usage={"output_tokens": output_tokens})


START = event(
    "message_start", message={"id": "msg_1", "content": [], "usage": {"input_tokens": 25, "output_tokens": 1}}
)
BLOCK = event("content_block_start", index=0, content_block={"type": "text", "text": ""})
PING = event("ping")
STOP = event("message_stop")
OVERLOADED = event("error", error={"type": "overloaded_error", "message": "Overloaded"})


def model(http: VendorHttp, upstream: Upstream, **spec: Any) -> AnthropicChat:
    account = Account("main", "anthropic", upstream.url, SecretStr("k1"))
    return AnthropicChat(http, account, ChatSpec(**{"model": "claude-sonnet-4-5", **spec}))


async def collect(chat: AnthropicChat, messages: list[ChatMessage], into: list[ChatItem]) -> None:
    async with chat.reply(messages) as items:
        async for item in items:
            into.append(item)  # noqa: PERF401 - kept when reading fails, too


async def replied(chat: AnthropicChat, messages: list[ChatMessage] = USER) -> list[ChatItem]:
    items: list[ChatItem] = []
    await collect(chat, messages, items)
    return items


def said(items: list[ChatItem]) -> str:
    return "".join(item.text for item in items if isinstance(item, TextDelta))


def read(pieces: list[bytes], **more: Any) -> tuple[str, Usage | None, Finish | None, bool, str]:
    """Return the items of the pieces, and the error that ends them."""
    reply = AnthropicReply("anthropic", **more)
    words = ""
    for piece in pieces:
        words += reply.feed(piece)
        if reply.done or reply.fault:
            break
    return words, reply.usage, reply.finish, reply.done, str(reply.fault or "")


async def test_whole_reply_gives_text_usage_and_finish(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(streaming([START, BLOCK, PING, text("Hel"), text("lo"), stopped("end_turn"), STOP]))

    items = await replied(model(http, upstream))

    assert said(items) == "Hello"
    assert items[-2:] == [Usage(25, 15), Finish("stop")]


async def test_requests_contain_the_settings_of_the_strategy(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(streaming([START, stopped("end_turn"), STOP]))
    messages = [
        ChatMessage("system", "Be brief."),
        ChatMessage("assistant", "Welcome!"),
        ChatMessage("user", "One"),
        ChatMessage("user", " "),
        ChatMessage("user", "Two"),
        ChatMessage("assistant", "Three"),
        ChatMessage("system", "Be kind."),
        ChatMessage("user", "Four"),
    ]

    await replied(model(http, upstream, max_tokens=7, temperature=1.5, options={"extra": {"top_k": 3}}), messages)
    await replied(model(http, upstream))

    first, second = upstream.seen
    assert first.path == "/v1/messages"
    assert first.headers["x-api-key"] == "k1"
    assert first.headers["anthropic-version"] == "2023-06-01"
    assert "Authorization" not in first.headers
    assert loads(first.body) == {
        "model": "claude-sonnet-4-5",
        "max_tokens": 7,
        "stream": True,
        "temperature": 1.0,
        "top_k": 3,
        "system": "Be brief.\n\nBe kind.",
        "messages": [
            {"role": "user", "content": "One\n\nTwo"},
            {"role": "assistant", "content": "Three"},
            {"role": "user", "content": "Four"},
        ],
    }
    assert loads(second.body).keys() == {"model", "max_tokens", "stream", "messages"}


async def test_requests_to_the_newer_version_have_no_temperature(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(streaming([START, stopped("end_turn"), STOP]))
    newer = {"version": "2026-10-21"}

    await replied(model(http, upstream, options=newer))

    assert upstream.seen[0].headers["anthropic-version"] == "2026-10-21"
    with pytest.raises(InvalidParameter, match="version 2026-10-21 does not support temperature"):
        model(http, upstream, temperature=0.5, options=newer)


async def test_unfinished_answers_are_continued_at_their_end(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(
        streaming([START, text(" "), text("\n"), text(" how are"), text(" you?"), stopped("end_turn"), STOP])
    )

    items = await replied(model(http, upstream), UNFINISHED)

    assert loads(upstream.seen[0].body)["messages"][-1] == {"role": "assistant", "content": "Hello,"}
    assert said(items) == " how are you?"


@pytest.mark.parametrize(
    ("answer", "reported"),
    [
        ("how", "how"),
        (" how", "how"),
        (" \nhow", "how"),
        ("\n\nhow", "\n\nhow"),
        (" \n how", " how"),
        (" x \n", "x \n"),
    ],
)
def test_white_space_of_the_prefill_is_not_repeated(answer: str, reported: str):
    assert read([START, text(answer)], space_before=" \n")[0] == reported
    assert read(by_byte(START + b"".join(map(text, answer))), space_before=" \n")[0] == reported


@pytest.mark.parametrize(
    ("name", "takes"),
    [
        ("claude-3-5-sonnet-20241022", True),
        ("claude-opus-4-20250514", True),
        ("claude-opus-4-1-20250805", True),
        ("claude-haiku-4-5", True),
        ("us.anthropic.claude-sonnet-4-20250514-v1:0", True),
        ("deepseek-chat", True),
        ("claude-opus-4-6", False),
        ("claude-sonnet-4-10-20270101", False),
        ("claude-sonnet-5", False),
    ],
)
def test_the_model_name_determines_continuation(name: str, *, takes: bool):
    account = Account("main", "anthropic", "http://x")

    assert AnthropicChat(None, account, ChatSpec(name)).takes_prefill is takes  # type: ignore[arg-type]
    reported = ChatSpec(name, options={"prefill": not takes})
    assert AnthropicChat(None, account, reported).takes_prefill is not takes  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("reason", "reported"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("refusal", "content_filter"),
        ("pause_turn", "stop"),
        (["x"], "stop"),
    ],
)
def test_finish_reasons_are_mapped(reason: Any, reported: str):
    assert read([START, text("a"), stopped(reason), STOP])[2] == Finish(reported)  # type: ignore[arg-type]


def test_counts_include_cached_tokens():
    counts = {"input_tokens": 3, "cache_creation_input_tokens": 5, "cache_read_input_tokens": 7, "output_tokens": 1}
    start = event("message_start", message={"usage": counts})

    assert read([start, stopped(None, output_tokens=4), stopped("end_turn", output_tokens=9), STOP])[1] == Usage(
        15, 9
    )
    assert read([start, text("a"), STOP])[1] is None, "the first count is not the last"
    assert read([START, event("message_delta", delta={"stop_reason": "end_turn"}), STOP])[1] == Usage(25, 1)


def test_reasoning_and_unknown_items_are_ignored():
    other = [
        event("content_block_delta", index=0, delta={"type": "thinking_delta", "thinking": "hm"}),
        event("content_block_delta", index=0, delta={"type": "signature_delta", "signature": "x"}),
        event("content_block_stop", index=0),
        event("something_new", value=1),
        b": comment\n\n",
    ]

    assert read([START, *other, text("a"), stopped("end_turn"), STOP])[0] == "a"


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


@pytest.mark.parametrize(
    "broken",
    [
        b"data: {\n\n",
        b"data: []\n\n",
        b"data: {}\n\n",
        text(1),
        text(None),
        event("content_block_delta"),
        event("message_start", message=None),
        event("message_delta", delta=None),
        event("error", error="x"),
    ],
)
def test_unknown_events_are_errors(broken: bytes):
    words, _, _, done, fault = read([START + text("a") + broken + text("b") + STOP])

    assert (words, done) == ("a", False)
    assert "anthropic sent an event" in fault


async def test_a_stream_without_its_end_is_an_error(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(streaming([START, text("Hel")]), streaming([START, text("Hel")], end=cut))

    with pytest.raises(Garbled, match="without an end mark"):
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


EVENTS = st.sampled_from(
    [
        START,
        BLOCK,
        PING,
        text("Grüße"),
        text(" 😀\n"),
        stopped(None),
        stopped("refusal"),
        STOP,
        OVERLOADED,
        b"data: {\n\n",
    ]
)


@given(
    st.lists(EVENTS, max_size=8).map(b"".join),
    st.lists(st.integers(0, 600), max_size=8),
    st.sampled_from(["", " "]),
)
def test_every_split_is_read_the_same(stream: bytes, at: list[int], space: str):
    whole = read([stream], space_before=space)

    assert read(split(stream, at), space_before=space) == whole
    assert read(by_byte(stream), space_before=space) == whole
