"""Gemini's protocol: requests, responses for every split, ends and errors."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from streams.wire.codec import dumps, loads
from tests.streams.pieces import by_byte, split
from tests.vendors.http.upstream import Upstream, cut, hold, plain, streaming
from vendors.account import Account, ChatSpec
from vendors.chat.gemini import GeminiChat, GeminiReply
from vendors.errors import Garbled, Refused, VendorError
from vendors.http.sse import LIMIT_BYTES
from vendors.http.transport import VendorHttp
from vendors.protocols import ChatItem, ChatMessage, Finish, TextDelta, Usage

USER = [ChatMessage("user", "Grüße")]
USAGE = {"promptTokenCount": 5, "candidatesTokenCount": 2, "thoughtsTokenCount": 30, "totalTokenCount": 37}


def chunk(*parts: Any, reason: Any = None, **more: Any) -> bytes:
    candidate = {"content": {"role": "model", "parts": list(parts)}, "index": 0}
    if reason is not None:
        candidate["finishReason"] = reason
    return payload(candidates=[candidate], **more)


def text(content: Any, **more: Any) -> bytes:
    return chunk({"text": content}, **more)


def payload(**value: Any) -> bytes:
    return b"data: %b\r\n\r\n" % dumps(value)


def bare(value: str) -> bytes:
    return value.replace("\n", "\r\n").encode()


OVERLOADED = bare("""{
  "error": {
    "code": 503,
    "message": "The model is overloaded.",
    "status": "UNAVAILABLE"
  }
}
""")
END = text("", reason="STOP", usageMetadata=USAGE)


def model(http: VendorHttp, upstream: Upstream, **spec: Any) -> GeminiChat:
    account = Account("main", "gemini", upstream.url, SecretStr("k1"))
    return GeminiChat(http, account, ChatSpec(**{"model": "gemini-2.5-flash", **spec}))


async def collect(chat: GeminiChat, into: list[ChatItem], messages: list[ChatMessage] = USER) -> None:
    async with chat.reply(messages) as items:
        async for item in items:
            into.append(item)  # noqa: PERF401 - kept when reading fails, too


async def replied(http: VendorHttp, upstream: Upstream) -> list[ChatItem]:
    items: list[ChatItem] = []
    await collect(model(http, upstream), items)
    return items


def read(pieces: list[bytes]) -> tuple[str, Usage | None, Finish | None, str]:
    """Return the items of the pieces, and the error that ends them."""
    reply = GeminiReply("gemini")
    words = ""
    for piece in pieces:
        words += reply.feed(piece)
        if reply.done or reply.fault:
            break
    return words, reply.usage, reply.finish, str(reply.fault or "")


async def test_whole_reply_gives_text_usage_and_finish(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(streaming([text("Hel", usageMetadata={"promptTokenCount": 5}), text("lo"), END]))

    items = await replied(http, upstream)

    assert "".join(item.text for item in items if isinstance(item, TextDelta)) == "Hello"
    assert items[-2:] == [Usage(5, 32), Finish("stop")]


async def test_requests_contain_the_settings_of_the_strategy(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(streaming([END]))
    messages = [
        ChatMessage("system", "Be brief."),
        ChatMessage("assistant", "Welcome!"),
        ChatMessage("user", "One"),
        ChatMessage("user", "Two"),
        ChatMessage("assistant", "Three"),
        ChatMessage("user", "Four"),
    ]
    options = {"generation": {"topP": 0.5}, "extra": {"safetySettings": []}}

    await collect(model(http, upstream, max_tokens=7, temperature=0.0, options=options), [], messages)
    await collect(model(http, upstream, model="tunedModels/mine"), [])

    first, second = upstream.seen
    assert first.path == "/models/gemini-2.5-flash:streamGenerateContent"
    assert first.query == {"alt": "sse"}, "and no key"
    assert first.headers["X-Goog-Api-Key"] == "k1"
    assert loads(first.body) == {
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "contents": [
            {"role": "user", "parts": [{"text": "One\n\nTwo"}]},
            {"role": "model", "parts": [{"text": "Three"}]},
            {"role": "user", "parts": [{"text": "Four"}]},
        ],
        "generationConfig": {"maxOutputTokens": 7, "temperature": 0.0, "topP": 0.5},
        "safetySettings": [],
    }
    assert second.path == "/tunedModels/mine:streamGenerateContent"
    assert loads(second.body).keys() == {"contents"}


def test_prefill_is_used_if_the_strategy_enables_it():
    account = Account("main", "gemini", "http://x")

    assert not GeminiChat(None, account, ChatSpec("m")).takes_prefill  # type: ignore[arg-type]
    assert GeminiChat(None, account, ChatSpec("m", options={"prefill": True})).takes_prefill  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("reason", "reported"),
    [("STOP", "stop"), ("MAX_TOKENS", "length"), ("SAFETY", "content_filter"), ("RECITATION", "content_filter")],
)
def test_finish_reasons_are_mapped(reason: str, reported: str):
    assert read([text("a", reason=reason, usageMetadata=USAGE)])[2] == Finish(reported)  # type: ignore[arg-type]


@pytest.mark.parametrize("reason", ["OTHER", "MALFORMED_FUNCTION_CALL", "NEW"])
async def test_answers_with_a_failure_reason_are_errors(http: VendorHttp, upstream: Upstream, reason: str):
    upstream.respond_with(streaming([text("a", reason=reason, usageMetadata=USAGE)]))
    items: list[ChatItem] = []

    with pytest.raises(Refused, match=f"broke off its answer: {reason}") as fault:
        await collect(model(http, upstream), items)

    assert items == [TextDelta("a")]
    assert fault.value.retryable


def test_blocked_prompt_is_content_filtered():
    blocked = payload(promptFeedback={"blockReason": "SAFETY"}, usageMetadata={"promptTokenCount": 5})

    assert read([blocked]) == ("", Usage(5, 0), Finish("content_filter"), "")


def test_reasoning_and_unknown_items_are_ignored():
    pieces = [
        b": comment\r\n\r\nevent: x\r\nid: 1\r\n",
        chunk({"text": "hm", "thought": True}),
        chunk({"inlineData": {"mimeType": "audio/L16", "data": ""}}),
        payload(candidates=[{"index": 0}], modelVersion="x"),
        payload(candidates=[{"content": {"role": "model"}}]),
        payload(usageMetadata={"promptTokenCount": "5"}),
        chunk({"text": "a"}, {"text": "b"}),
    ]

    assert read([*pieces, END]) == ("ab", Usage(5, 32), Finish("stop"), "")


async def test_plain_errors_within_the_answer_are_raised_after_its_text(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(streaming([text("Hel") + OVERLOADED], end=hold))
    items: list[ChatItem] = []

    with pytest.raises(Refused, match="gemini broke off with an error: The model is overloaded") as fault:
        await collect(model(http, upstream), items)

    assert items == [TextDelta("Hel")]
    assert (fault.value.retryable, fault.value.extra) == (True, {"code": "UNAVAILABLE"})


@pytest.mark.parametrize(
    "error",
    [
        payload(error={"code": 400, "message": "no\n }", "status": "INVALID_ARGUMENT"}),
        b'{"error": {"code": 400, "message": "no }"}}\n',
        b'[{\n"error": {"message": "no }"\n}\n}\n]\n',
        b'\n\n{"error":\n{"message": "no }"\n}}\r\n',
    ],
)
def test_errors_within_the_answer_are_recognized(error: bytes):
    words, _, finish, fault = read([text("a") + error + END])

    assert (words, finish) == ("a", None)
    assert "gemini broke off with an error: no }" in fault


@pytest.mark.parametrize("broken", [b"data: {\r\n\r\n", b"data: " + b"x" * LIMIT_BYTES])
def test_malformed_events_are_errors(broken: bytes):
    words, _, finish, fault = read([text("a"), broken, END])

    assert (words, finish) == ("a", None)
    assert "gemini sent a" in fault


@pytest.mark.parametrize("lines", [b"{\n" + b"x\n" * 9_000, b"{\n" + b"x" * 20_000 + b"\n", b"<p>\n{\n"])
def test_lines_that_are_no_events_are_skipped(lines: bytes):
    assert read([text("a"), lines, text("b"), END]) == ("ab", Usage(5, 32), Finish("stop"), "")


async def test_a_stream_without_a_finish_reason_is_an_error(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(streaming([text("Hel")]), streaming([text("Hel")], end=cut), streaming([OVERLOADED[:-9]]))

    with pytest.raises(Garbled, match="without a final event"):
        await replied(http, upstream)
    with pytest.raises(VendorError) as fault:
        await replied(http, upstream)
    assert fault.value.retryable
    with pytest.raises(Garbled, match="without a final event"):
        await replied(http, upstream)


async def test_text_with_a_finish_reason_is_complete(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(streaming([text("Hello", reason="STOP")], end=cut))

    assert await replied(http, upstream) == [TextDelta("Hello"), Finish("stop")]


async def test_the_retry_time_of_a_vendor_is_respected(http: VendorHttp, upstream: Upstream):
    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.5s"}]
    body = dumps({"error": {"code": 429, "message": "slow", "status": "RESOURCE_EXHAUSTED", "details": details}})
    upstream.respond_with(plain(429, body))

    with pytest.raises(Refused, match="answered 429: slow") as fault:
        await replied(http, upstream)

    assert len(upstream.seen) == 1
    assert (fault.value.retry_after_s, fault.value.extra) == (34.5, {"code": "RESOURCE_EXHAUSTED"})


EVENTS = st.sampled_from(
    [
        *(text("Grüße"), text(" 😀\n"), END, OVERLOADED, b"\r\n", b"\n", b"data:\n", b"data: {\n", b"data: }\r\n"),
        *(payload(promptFeedback={"blockReason": "OTHER"}), b"data: 1\n\n", b": c\n", b"{\n", b"}\n", b"[]\n"),
    ]
)


@given(st.lists(EVENTS, max_size=8).map(b"".join), st.lists(st.integers(0, 600), max_size=8))
def test_every_split_is_read_the_same(stream: bytes, at: list[int]):
    whole = read([stream])

    assert read(split(stream, at)) == whole
    assert read(by_byte(stream)) == whole
