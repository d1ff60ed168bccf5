"""Valid JSON of random shape between the events of a reply: no exception, and no text that has arrived is lost."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streams.wire.codec import dumps
from tests.streams.pieces import split
from tests.vendors.random_json import VERY_MANY, mixed, numbers_in, random_json
from vendors.chat.anthropic import AnthropicReply
from vendors.chat.gemini import GeminiReply
from vendors.chat.openai import OpenAIReply
from vendors.chat.reply import Reply
from vendors.errors import Garbled

NAMES = (
    "choices", "delta", "content", "text", "index", "role", "usage", "refusal", "candidates", "parts", "thought",
    "usageMetadata", "promptFeedback", "message", "prompt_tokens", "promptTokenCount",
)  # fmt: skip
TYPES = ("text_delta", "message_start", "ping", "thinking", "content_block_start", "text", "x")
VALUES = random_json(NAMES, types=TYPES, texts=TYPES)
"""Without errors and reasons to finish, which end a reply."""


def openai(text: str) -> Any:
    return {"choices": [{"index": 0, "delta": {"content": text}}]}


def anthropic(text: str) -> Any:
    return {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}


def gemini(text: str) -> Any:
    return {"candidates": [{"content": {"role": "model", "parts": [{"text": text}]}}]}


REPLIES = {
    "openai": (OpenAIReply, openai),
    "anthropic": (AnthropicReply, anthropic),
    "gemini": (GeminiReply, gemini),
}


def check(vendor: str, values: list[Any], at: list[int]) -> None:
    new, spoken = REPLIES[vendor]
    reply: Reply = new(vendor)
    stream = b"".join(b"data: %b\n\n" % dumps(event) for event in mixed(spoken, values))
    text = "".join(reply.feed(piece) for piece in split(stream, at))
    assert reply.fault is None
    assert numbers_in(text.encode()) == list(range(len(values)))


@pytest.mark.parametrize("vendor", REPLIES)
@given(st.lists(VALUES, max_size=6), st.lists(st.integers(0, 900), max_size=4))
def test_random_events_are_skipped(vendor: str, values: list[Any], at: list[int]) -> None:
    check(vendor, values, at)


@pytest.mark.parametrize(
    ("vendor", "value"),
    [
        ("openai", {"choices": [{"index": [0], "delta": {"content": ""}}]}),
        ("gemini", {"usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": "2"}}),
        ("gemini", {"usageMetadata": {"promptTokenCount": 1, "thoughtsTokenCount": [2]}}),
    ],
)
def test_values_of_another_type_are_skipped(vendor: str, value: Any) -> None:
    check(vendor, [value], [])


@pytest.mark.parametrize("vendor", REPLIES)
def test_json_that_is_nested_too_deeply_is_an_error_after_the_text(vendor: str) -> None:
    new, spoken = REPLIES[vendor]
    reply: Reply = new(vendor)

    assert reply.feed(b"data: %b\n\ndata: %b\n\n" % (dumps(spoken("Hi.")), b"[" * 100_000)) == "Hi."
    assert isinstance(reply.fault, Garbled)


@pytest.mark.soak
@pytest.mark.timeout(0)
@pytest.mark.parametrize("vendor", REPLIES)
@settings(max_examples=VERY_MANY)
@given(st.lists(VALUES, max_size=6), st.lists(st.integers(0, 900), max_size=4))
def test_very_many_random_events_are_skipped(vendor: str, values: list[Any], at: list[int]) -> None:
    check(vendor, values, at)
