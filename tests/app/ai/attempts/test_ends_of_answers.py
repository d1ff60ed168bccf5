"""Why a language model stopped, in the words of many servers, and what follows the end of an answer."""

import json  # noqa: TID251 - an integer of more than 64 bits
from typing import Any

import pytest

from streams.wire.codec import dumps
from tests.app.ai.attempts.odd_events import DONE, END, STOPPED, block, candidate, delta, event, said_by
from tests.app.ai.conftest import Talk
from tests.app.ai.sandbox_accounts import chat
from tests.running.servers import Server
from vendors.sandbox.faults import key_of
from vendors.sandbox.server import Running


@pytest.fixture
def server(shared_server: Server) -> Server:
    return shared_server


def spoken_with(platform: str, text: str, reason: Any) -> str:
    """Return an answer in the form of a platform, whose last text has a reason to stop."""
    if platform == "anthropic":
        stopped = event(type="message_delta", delta={"stop_reason": reason}, usage=None)
        return block(text) + stopped + event(type="message_stop")
    return candidate(text, reason) if platform == "gemini" else delta(text, reason) + DONE


async def ended(talk: Talk, server: Server, sandbox: Running, platform: str, body: str) -> tuple[str, str, Any]:
    """Return the last event of the answer, its text, and why it ended."""
    await chat(server, sandbox, "one", platform, key_of(events=body))
    seen = await talk.turn("Hello", "one")
    content = seen[-1].content
    return seen[-1].name, said_by(seen), content.get("finish_reason") or content["error"]["message"]


async def check_reason(
    talk: Talk, server: Server, sandbox: Running, *, platform: str, reason: Any, reported: str
) -> None:
    name, text, why = await ended(talk, server, sandbox, platform, spoken_with(platform, "Hello.", reason))
    assert text == "Hello."
    if reported == "broken":
        word = reason if isinstance(reason, str) else ""
        assert (name, why) == ("error", f"backend_unavailable: {platform} broke off its answer: {word}")
    else:
        assert (name, why) == ("end", reported)


ONE_OF_EACH_KIND = [
    ("vendor_b_llm", "network_error", "broken"),
    ("vendor_b_llm", "abort", "broken"),
    ("vendor_b_llm", "sensitive", "content_filter"),
    ("vendor_b_llm", "max_tokens", "length"),
    ("vendor_b_llm", "tool_calls", "stop"),
    ("gemini", "MALFORMED_RESPONSE", "broken"),
    ("gemini", "MODEL_ARMOR", "content_filter"),
    ("gemini", 2, "length"),
    ("anthropic", "error", "broken"),
    ("anthropic", "refusal", "content_filter"),
    ("anthropic", "model_context_window_exceeded", "length"),
]


@pytest.mark.parametrize(("platform", "reason", "reported"), ONE_OF_EACH_KIND)
async def test_a_reason_says_whether_an_answer_is_complete(
    talk: Talk, server: Server, sandbox: Running, *, platform: str, reason: Any, reported: str
) -> None:
    await check_reason(talk, server, sandbox, platform=platform, reason=reason, reported=reported)


WORDS = {
    "broken": [
        "insufficient_system_resource", "error", "ERROR", "timeout", "cancelled", "USER_CANCEL", "time_limit",
        "model_unloaded", "malformed_model_output", "MALFORMED_FUNCTION_CALL", "failed", "internal_error",
        "UNEXPECTED_TOOL_CALL", "MISSING_THOUGHT_SIGNATURE",
    ],
    "length": ["length", "MAX_TOKENS", "model_length", "max_output_tokens", "FinishReason.MAX_TOKENS"],
    "content_filter": ["content_filter", "SAFETY", "RECITATION", "guardrail_intervened", "SPII"],
    "stop": ["stop", "STOP", "eos", "end_turn", "stop_sequence", "COMPLETE", "normal", ["stop"], 1],
}  # fmt: skip


@pytest.mark.soak
@pytest.mark.parametrize("platform", ["vendor_b_llm", "gemini", "anthropic"])
@pytest.mark.parametrize("reported", WORDS)
async def test_reasons_are_given_in_many_words(
    talk: Talk, server: Server, sandbox: Running, platform: str, reported: str
) -> None:
    for reason in WORDS[reported]:
        await check_reason(talk, server, sandbox, platform=platform, reason=reason, reported=reported)


NO_REASONS: list[Any] = ["null", "", "  ", "None", 0, False, {}, []]


@pytest.mark.parametrize("platform", ["vendor_b_llm", "gemini", "anthropic"])
async def test_a_text_that_says_null_is_no_reason(
    talk: Talk, server: Server, sandbox: Running, platform: str
) -> None:
    """The connection is reset after these words, so that only a reason would make the answer complete."""
    for reason in NO_REASONS:
        body = spoken_with(platform, "Hel", reason).split(DONE)[0].split('data: {"type":"message_stop"')[0]
        assert await ended(talk, server, sandbox, platform, body) == (
            "error", "Hel", f"backend_unavailable: {platform} ended its stream without a final event",
        ), reason  # fmt: skip


NO_ERRORS: list[Any] = [
    None, {}, "", False, 0, [], "null", {"code": 0, "message": "success"}, {"code": "0", "message": ""},
    {"code": 200, "message": "OK", "request_id": "r1"}, {"code": "200"}, {"message": "", "type": "", "param": "x"},
]  # fmt: skip


@pytest.mark.parametrize("platform", ["vendor_b_llm", "gemini"])
async def test_an_error_that_says_success_is_none(
    talk: Talk, server: Server, sandbox: Running, platform: str
) -> None:
    part = {"gemini": candidate, "vendor_b_llm": delta}[platform]
    parts = [part("o", None).replace("{", f'{{"error":{dumps(error).decode()},', 1) for error in NO_ERRORS]
    body = "".join(parts) + part("", "stop")

    assert await ended(talk, server, sandbox, platform, body) == ("end", "o" * len(NO_ERRORS), "stop")


@pytest.mark.parametrize("platform", ["vendor_b_llm", "gemini"])
@pytest.mark.parametrize("error", [{"code": 0, "message": "busy"}, {"code": 500}, "busy", True, ["busy"], {"x": 1}])
async def test_an_error_loses_no_text_of_its_event(
    talk: Talk, server: Server, sandbox: Running, platform: str, error: Any
) -> None:
    part = {"gemini": candidate, "vendor_b_llm": delta}[platform]
    body = part("Hel", None).replace("{", f'{{"error":{dumps(error).decode()},', 1)

    name, text, why = await ended(talk, server, sandbox, platform, body + part("lo.", "stop"))

    assert (name, text) == ("error", "Hel")
    assert "broke off with an error" in why or "malformed error" in why


@pytest.mark.parametrize(
    ("body", "answer"),
    [
        (delta("Hello.", "stop") + delta("\n") + "data: <html>\n\n", "Hello."),
        (delta("Hello.", "stop") + delta(" \n") + event(error={"message": "late"}), "Hello."),
        (delta("Hello.") + "data:   [DONE]\n\n" + delta("x"), "Hello."),
        (delta("Hello.") + 'data: "[DONE]"\n\n' + delta("x"), "Hello."),
        (delta("Hello.") + "data: [done]\n\n" + delta("x"), "Hello."),
        (delta("Hello.") + 'data: " [DONE] "\n\ndata: {cut\n\n', "Hello."),
    ],
)
async def test_nothing_behind_the_end_of_an_answer_matters(
    talk: Talk, server: Server, sandbox: Running, body: str, answer: str
) -> None:
    name, text, why = await ended(talk, server, sandbox, "vendor_b_llm", body)
    assert (name, text.rstrip(), why) == ("end", answer, "stop")


@pytest.mark.parametrize(
    ("platform", "body"),
    [
        ("gemini", candidate("Hello.") + candidate("\n", None) + "data: <html>\n\n"),
        ("anthropic", block("Hello.") + STOPPED + "data: <html>\n\n"),
        ("vendor_b_llm", delta("Hello.") + END + delta("") + "data: <html>\n\n"),
    ],
)
async def test_no_model_loses_its_end_to_what_follows(
    talk: Talk, server: Server, sandbox: Running, platform: str, body: str
) -> None:
    name, text, _ = await ended(talk, server, sandbox, platform, body)
    assert (name, text.strip()) == ("end", "Hello.")


@pytest.mark.parametrize(
    ("error", "retryable"),
    [
        ({"code": 503}, True),
        ({"code": "503"}, True),
        ({"code": 14, "status": "UNAVAILABLE"}, True),
        ({"status": "RESOURCE_EXHAUSTED"}, True),
        ({"code": 400, "status": "INVALID_ARGUMENT"}, False),
        ({"code": "5_0_3"}, False),
        ({"code": 10**400}, False),
    ],
)
async def test_an_error_of_google_says_whether_to_try_again(
    talk: Talk, server: Server, sandbox: Running, error: dict[str, Any], *, retryable: bool
) -> None:
    body = candidate("Hel", None) + f"data: {json.dumps({'error': {'message': 'no', **error}})}\n\n"
    await chat(server, sandbox, "one", "gemini", key_of(events=body))

    seen = await talk.turn("Hello", "one")

    assert seen[-1].content["error"]["extra"]["retryable"] is retryable, seen[-1]
