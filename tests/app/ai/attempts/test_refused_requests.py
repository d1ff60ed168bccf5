"""Requests that language models refuse for a reason that another request does not have."""

from typing import Any

import pytest

from storage.operators.audit import COMMAND
from streams.wire.codec import dumps
from tests.app.ai.attempts.odd_events import DONE, delta, said_by
from tests.app.ai.conftest import Talk
from tests.app.ai.sandbox_accounts import chat
from tests.app.ai.speech.speech import audio_of
from tests.peers.sse_client import all_events, named
from tests.running.servers import Server
from vendors.sandbox.faults import key_of
from vendors.sandbox.server import Running


@pytest.fixture
def server(shared_server: Server) -> Server:
    return shared_server


def refusal(message: str, status: int = 400, **fields: Any) -> dict[str, Any]:
    return {"refusal": dumps({"error": {"message": message, **fields}}).decode(), "refusal_status": status}


async def check_stream_options(talk: Talk, server: Server, sandbox: Running, **words: Any) -> None:
    key = key_of(refuses="stream_options", text="Hello.", **words)
    await chat(server, sandbox, "one", "vendor_b_llm", key)
    other = {"chat": {"account": "one", "model": "gpt-4.1-mini"}}
    await server.services.configs.put("default", "conversation", "two", other, author="test", origin=COMMAND)

    for strategy in ("one", "one", "two"):
        seen = await talk.turn("Hello", strategy)
        assert (seen[-1].name, said_by(seen)) == ("end", "Hello."), seen[-1]

    refused = [entry for entry in sandbox.bill.since(0) if not entry.billed]
    assert len(refused) == 1, "the account remembers it"


@pytest.mark.parametrize(
    "words",
    [
        {},
        refusal("Extra inputs are not permitted"),
        refusal("stream_options is not implemented", 501),
        refusal("stream_options is not supported", 200),
    ],
)
async def test_a_server_that_refuses_stream_options_is_asked_without_them(
    talk: Talk, server: Server, sandbox: Running, words: dict[str, Any]
) -> None:
    await check_stream_options(talk, server, sandbox, **words)


@pytest.mark.soak
@pytest.mark.parametrize(
    ("message", "status"),
    [
        ("Unrecognized request argument supplied: stream_options", 400),
        ("Unknown field include_usage", 400),
        ('Unrecognized field "streamOptions"', 422),
        ("stream_options not supported", 404),
        ("Additional properties are not allowed", 400),
        ("Unknown parameter", 400),
    ],
)
async def test_stream_options_are_refused_in_many_words(
    talk: Talk, server: Server, sandbox: Running, message: str, status: int
) -> None:
    await check_stream_options(talk, server, sandbox, **refusal(message, status))


async def speak(talk: Talk, server: Server, sandbox: Running, **account_fields: Any) -> None:
    """Let a chat model read a text aloud, with an account of these fields, twice."""
    value = {"platform": "vendor_b_llm", "base_url": f"{sandbox.url}/openai/v1", **account_fields}
    await server.services.configs.put("default", "vendor_accounts", "voice", value, author="test", origin=COMMAND)
    voice = {"account": "voice", "model": "gpt-audio", "voice": "alloy", "audio_format": "wav"}
    for name in ("one", "two"):
        await server.services.configs.put("default", "speech", name, voice, author="test", origin=COMMAND)
        body = {"text": f"This is text {name}.", "strategies": [name]}
        async with talk.post("/bp/ai/audio/tts", json=body) as response:
            seen = await all_events(response)
        assert seen[-1].name == "end", seen[-1]
        assert audio_of(named(seen, "audio_chunk"))


@pytest.mark.parametrize("words", [{}, refusal("stream_options is not supported", 200)])
async def test_a_spoken_chat_is_asked_without_refused_stream_options(
    talk: Talk, server: Server, sandbox: Running, words: dict[str, Any]
) -> None:
    await speak(talk, server, sandbox, api_key=key_of(refuses="stream_options", **words))

    billed = [bool(entry.billed) for entry in sandbox.bill.since(0)]
    assert billed == [False, True, True], "the account remembers it"


async def test_a_spoken_chat_may_never_be_asked_with_stream_options(
    talk: Talk, server: Server, sandbox: Running
) -> None:
    await speak(talk, server, sandbox, api_key=key_of(), stream_options=False)

    assert ["stream_options" in entry.asked for entry in sandbox.bill.since(0)] == [False, False]


async def test_another_refusal_is_not_remembered(talk: Talk, server: Server, sandbox: Running) -> None:
    words = refusal("Extra inputs are not permitted")
    await chat(server, sandbox, "one", "vendor_b_llm", key_of(context_tokens=1, **words))

    for _ in range(2):
        assert (await talk.turn("much too long", "one"))[-1].name == "error"

    calls = list(sandbox.bill.since(0))
    assert len(calls) == 4, "each is tried without stream_options, because that may be refused"


async def test_an_account_may_never_ask_with_stream_options(talk: Talk, server: Server, sandbox: Running) -> None:
    await chat(server, sandbox, "one", "vendor_b_llm", key_of(text="Hello."))
    value = {
        "platform": "vendor_b_llm", "base_url": f"{sandbox.url}/openai/v1", "api_key": key_of(text="Hello."),
        "stream_options": False,
    }  # fmt: skip
    await server.services.configs.put("default", "vendor_accounts", "one", value, author="test", origin=COMMAND)

    await talk.turn("Hello", "one")

    (entry,) = sandbox.bill.since(0)
    assert "stream_options" not in entry.asked


@pytest.mark.parametrize("platform", ["vendor_b_llm", "anthropic", "gemini"])
async def test_a_history_that_is_too_long_is_halved_once(
    talk: Talk, server: Server, sandbox: Running, platform: str
) -> None:
    await check_halving(talk, server, sandbox, platform)


async def test_a_history_is_halved_if_a_stream_begins_with_its_refusal(
    talk: Talk, server: Server, sandbox: Running
) -> None:
    words = refusal("This endpoint's maximum context length is 60 tokens. You requested 90.", 200)
    await check_halving(talk, server, sandbox, **words)


@pytest.mark.parametrize(
    "message",
    [
        "The input token count is 40000 but the model only supports up to 32768",
        "Invalid request: Your request exceeded model token limit: 8192",
        "Prompt 超长",
    ],
)
async def test_a_history_is_halved_at_several_vendors(
    talk: Talk, server: Server, sandbox: Running, message: str
) -> None:
    await check_halving(talk, server, sandbox, **refusal(message))


@pytest.mark.soak
@pytest.mark.parametrize(
    ("message", "status"),
    [
        ("Input is too long for requested model.", 400),
        ("litellm.ContextWindowExceededError: litellm.BadRequestError", 400),
        ("The input (5000 tokens) is longer than the model's context length (4096 tokens).", 400),
        ("Prompt contains 40000 tokens, too large for model with 32768 maximum context length", 400),
        ("Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000", 422),
        ("Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with", 400),
        ("<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 30720]", 400),
        ("This model's maximum prompt length is 131072 but the request contains 140000 tokens.", 400),
        ("Request too large for model. Please reduce your message size and try again.", 413),
        ("context size exceeded: the request exceeds the available context size", 500),
        ("The decoder prompt (length 9000) is longer than the maximum model length of 8192", 400),
        ("The prompt (total length 12345) is too long to fit into the model (context length 4096).", 400),
        ("Context size has been exceeded.", 500),
        ("context length exceeded", 400),
        ("invalid params, context window exceeds limit (2013)", 400),
        ("Request body too large for gpt-4o model. Max size: 8000 tokens.", 413),
        ("prompt tokens too long", 400),
        ("the max input characters is 11200", 400),
        ("Total tokens of image and text exceed max message tokens", 400),
        ("输入长度超过模型最大限制", 400),
        ("input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000", 400),
        ("Request too large on tokens per minute (TPM): Limit 6000, please reduce your message size", 413),
    ],
)
async def test_messages_are_too_long_in_many_words(
    talk: Talk, server: Server, sandbox: Running, message: str, status: int
) -> None:
    await check_halving(talk, server, sandbox, **refusal(message, status))


@pytest.mark.parametrize("status", [400, 200])
async def test_a_history_is_not_halved_for_the_rate_of_its_tokens(
    talk: Talk, server: Server, sandbox: Running, status: int
) -> None:
    await check_other_refusal(talk, server, sandbox, **refusal("Too many tokens per minute, try later.", status))


@pytest.mark.soak
@pytest.mark.parametrize(
    ("message", "status", "code"),
    [
        ("max_tokens is too large: 100000. This model supports at most 16384 completion tokens", 400, ""),
        ("'max_tokens' or 'max_completion_tokens' is too large: 9. This model's maximum context length", 400, ""),
        ("max_tokens: 100000 > 8192, which is the maximum allowed number of output tokens", 400, ""),
        ("Number of input tokens exceeds your per-minute rate limit", 400, ""),
        ("Rate limit reached on tokens per min (TPM): Limit 6000, Used 5900, Requested 300.", 400, ""),
        ("Too many tokens, please wait before trying again.", 200, ""),
        ("Request body too large. Max size: 1048576 bytes", 413, ""),
        ("Payload Too Large", 413, ""),
        ("Request Entity Too Large", 413, ""),
        ("Invalid 'user': string too long. Expected one with maximum length 64", 400, "string_above_max_length"),
        ("This model's maximum context length is 8192 tokens.", 404, ""),
        ("You exceeded your current quota of input tokens", 400, ""),
        ("Stop sequence is too long", 400, ""),
    ],
)  # fmt: skip
async def test_other_limits_are_no_length_of_the_messages(
    talk: Talk, server: Server, sandbox: Running, *, message: str, status: int, code: str
) -> None:
    await check_other_refusal(talk, server, sandbox, **refusal(message, status, code=code))


async def check_other_refusal(talk: Talk, server: Server, sandbox: Running, **words: Any) -> None:
    """Check that a refusal in these words leads to no call with a shorter history."""
    await chat(server, sandbox, "talks", "vendor_b_llm", key_of(text="yes " * 20))
    await chat(server, sandbox, "short", "vendor_b_llm", key_of(context_tokens=60, **words))
    for _ in range(4):
        await talk.turn("well " * 4, "talks")
    before = len(list(sandbox.bill.since(0)))

    seen = await talk.turn("And now?", "short")

    assert seen[-1].name == "error"
    assert len(list(sandbox.bill.since(0))) == before + 1


async def check_halving(
    talk: Talk, server: Server, sandbox: Running, platform: str = "vendor_b_llm", **words: Any
) -> None:
    await chat(server, sandbox, "talks", "vendor_b_llm", key_of(text="yes " * 20))
    await chat(server, sandbox, "short", platform, key_of(text="Fine.", context_tokens=60, **words))
    for _ in range(4):
        await talk.turn("well " * 4, "talks")
    before = len(list(sandbox.bill.since(0)))

    seen = await talk.turn("And now?", "short")

    assert (seen[-1].name, said_by(seen)) == ("end", "Fine."), seen[-1]
    *refused, answered = list(sandbox.bill.since(0))[before:]
    assert not any(call.billed for call in refused)
    assert len(refused) == (2 if words.get("refusal_status") == 500 else 1), "the status 500 is tried again"
    assert 2 < answered.billed["input_tokens"] <= 60


async def test_a_message_that_is_too_long_by_itself_is_an_error_after_one_call(
    talk: Talk, server: Server, sandbox: Running
) -> None:
    await chat(server, sandbox, "short", "vendor_b_llm", key_of(context_tokens=3))

    seen = await talk.turn("This is much too long for it", "short")

    assert seen[-1].name == "error"
    (attempt,) = seen[-1].content["error"]["extra"]["attempts"]
    assert "maximum context length is 3 tokens" in attempt["message"]
    assert len(list(sandbox.bill.since(0))) == 1


async def test_usage_that_is_not_reported_is_estimated_by_script(
    talk: Talk, server: Server, sandbox: Running
) -> None:
    await chat(server, sandbox, "one", "vendor_b_llm", key_of(events=delta("你好" * 50, "stop") + DONE))

    seen = await talk.turn("你好" * 50, "one")

    price = seen[-1].content["unit_price"]
    assert (price["input_token"], price["output_token"]) == (150, 150)
