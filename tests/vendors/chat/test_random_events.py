"""Valid JSON of random shape between the events of a reply: no exception, and no text that has arrived is lost."""

import json  # noqa: TID251 - events with NaN and halves of characters
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.streams.pieces import split
from tests.vendors.random_json import VERY_MANY, numbers_in
from vendors.chat.anthropic import AnthropicReply
from vendors.chat.gemini import GeminiReply
from vendors.chat.openai import OpenAIReply
from vendors.chat.reply import Reply
from vendors.chat.thoughts import Thoughts
from vendors.errors import Garbled

NAMES = st.sampled_from([
    "choices", "delta", "content", "text", "type", "index", "role", "usage", "refusal", "candidates", "parts",
    "thought", "usageMetadata", "promptFeedback", "message", "prompt_tokens", "promptTokenCount", "x",
    "content_block", "reasoning_content", "reasoning", "finish_reason", "finishReason", "stop_reason", "value",
    "error", "code", "status",
])  # fmt: skip
TYPES = st.sampled_from([
    "message_start", "message_delta", "ping", "thinking", "content_block_start", "text", "output_text",
    "content_block_delta", "text_delta", "x",
])  # fmt: skip
TEXTS = st.sampled_from(["", "STOP", "stop", "a", "<", "[THIN", "<b>", "\ud83d", "\ude00", "\u200b", "0"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | TYPES | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)
ERRORS = st.builds(
    lambda error, type_: {"error": error, "type": type_}, VALUES, st.sampled_from(["error", "x", None])
)
FAILED: list[dict[str, Any] | bytes] = [
    {"object": "error", "message": "boom", "code": 500}, {"text": "boom", "error_code": 50001}, {"type": "error"},
    {"code": 500, "message": "boom"}, {"detail": "boom"}, {"choices": None, "base_resp": {"status_code": 1002}},
    b'event: error\ndata: {"message": "boom"}\n\n', b"event: error\ndata: boom\n\n",
]  # fmt: skip
SURE_ERRORS = st.sampled_from(FAILED)
HEARTBEATS = st.sampled_from([b": x\n\n", b"data: \n\n", b"data: ping\n\n", b"\n", b"event: ping\ndata: {}\n\n"])
EVENTS = st.lists(VALUES | ERRORS | SURE_ERRORS | HEARTBEATS, max_size=6)
CUTS = st.lists(st.integers(0, 900), max_size=4)
ENDS = st.sampled_from([b"\n\n", b"\n"])


def openai(text: str) -> Any:
    return {"choices": [{"index": 0, "delta": {"content": text}}]}


def anthropic(text: str) -> Any:
    return {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}


def gemini(text: str) -> Any:
    return {"candidates": [{"content": {"role": "model", "parts": [{"text": text}]}}]}


REPLIES: dict[str, tuple[Callable[[], Reply], Callable[[str], Any]]] = {
    "openai": (lambda: OpenAIReply("v"), openai),
    "openai_held": (lambda: OpenAIReply("v"), openai),
    "openai_plain": (lambda: OpenAIReply("v"), openai),
    "anthropic": (lambda: AnthropicReply("v"), anthropic),
    "gemini": (lambda: GeminiReply("v"), gemini),
}


def encoded(value: Any, end: bytes = b"\n\n") -> bytes:
    """Return an event. Unlike the codec, this encodes NaN and halves of characters, as servers do."""
    return b"data: %b%b" % (json.dumps(value).encode(), end)


def may_fail(value: Any) -> bool:
    """Return whether an event may be an error without the field `error`."""
    if isinstance(value, list):
        value = next(iter(value), None)
    return value in FAILED or (isinstance(value, dict) and any(map(value.get, ("code", "status"))))


def ends(value: Any) -> bool:
    """Return whether a value may end a reply with an error: it has an error, or a reason that none has."""
    if isinstance(value, list):
        return any(map(ends, value))
    if not isinstance(value, dict):
        return False
    error = any(value.get(name) for name in ("error", "finishReason")) or value.get("type") == "error"
    return error or any(map(ends, value.values()))


def check(vendor: str, values: list[Any], at: list[int], end: bytes = b"\n\n") -> None:
    """Read a text before each value, which is an event or bytes. All texts up to the first error must arrive."""
    new, spoken = REPLIES[vendor]
    reply = new()
    stream = b"".join(
        encoded(spoken(f"«{number}»"), end) + (value if isinstance(value, bytes) else encoded(value, end))
        for number, value in enumerate(values)
    )
    stream += b"\n"
    thoughts = None if vendor == "openai_plain" else Thoughts(begins_inside=vendor == "openai_held")
    texts = [reply.feed(piece) for piece in split(stream, at)]
    text = "".join(texts if thoughts is None else map(thoughts.feed, texts))
    first_end = next((number for number, value in enumerate(values) if ends(value) or may_fail(value)), None)
    assert reply.fault is not None or not any(value in FAILED for value in values)
    if first_end is not None:
        assert vendor == "openai_held" or numbers_in(text)[: first_end + 1] == list(range(first_end + 1))
        return
    assert reply.fault is None
    reply.done = vendor.startswith("openai")  # What is held back follows at the end.
    rest = reply.end()
    assert numbers_in(text + (rest if thoughts is None else thoughts.end(rest))) == list(range(len(values)))


@pytest.mark.parametrize("vendor", REPLIES)
@given(EVENTS, CUTS, ENDS)
def test_random_events_are_skipped(vendor: str, values: list[Any], at: list[int], end: bytes) -> None:
    check(vendor, values, at, end)


@pytest.mark.parametrize(
    ("vendor", "value"),
    [
        ("openai", {"choices": [{"index": [0], "delta": {"content": ""}}]}),
        ("openai", {"choices": [{"delta": {"content": [{"type": [], "text": "x"}]}, "finish_reason": "stop"}]}),
        ("openai", {"choices": [{"delta": {"content": "\ud83d"}, "logprobs": float("nan")}]}),
        ("gemini", {"usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": "2"}}),
        ("gemini", {"usageMetadata": {"promptTokenCount": 1, "thoughtsTokenCount": [2]}}),
        ("gemini", {"error": {"code": [None]}}),
        ("anthropic", {"type": "content_block_start", "content_block": ["x"]}),
    ],
)
def test_values_of_another_type_are_skipped(vendor: str, value: Any) -> None:
    check(vendor, [value, value], [])


@pytest.mark.parametrize("vendor", sorted({*REPLIES} - {"openai_held"}))  # That one holds all text back.
def test_json_that_is_nested_too_deeply_is_an_error_after_the_text(vendor: str) -> None:
    new, spoken = REPLIES[vendor]
    reply = new()

    text = reply.feed(encoded(spoken("Hi.")) + b"data: %b\n\n" % (b"[" * 100_000))

    assert text + reply.end() == "Hi."
    assert isinstance(reply.fault, Garbled)


@pytest.mark.soak
@pytest.mark.timeout(0)
@pytest.mark.parametrize("vendor", REPLIES)
@settings(max_examples=VERY_MANY)
@given(EVENTS, CUTS, ENDS)
def test_very_many_random_events_are_skipped(vendor: str, values: list[Any], at: list[int], end: bytes) -> None:
    check(vendor, values, at, end)
