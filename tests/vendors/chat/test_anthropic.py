"""Anthropic's Messages protocol: requests, and responses for every split."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.wire.codec import loads
from streams.wire.errors import InvalidParameter
from tests.streams.pieces import by_byte, split
from tests.vendors.chat.anthropic_events import START, STOP, USER, event, model, read, replied, said, stopped, text
from tests.vendors.http.upstream import Upstream, streaming
from vendors.account import Account, ChatSpec
from vendors.chat.anthropic import AnthropicChat
from vendors.http.transport import VendorHttp
from vendors.protocols import ChatMessage, Finish, Usage

UNFINISHED = [*USER, ChatMessage("assistant", "Hello, \n")]
BLOCK = event("content_block_start", index=0, content_block={"type": "text", "text": ""})
PING = event("ping")
OVERLOADED = event("error", error={"type": "overloaded_error", "message": "Overloaded"})


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
