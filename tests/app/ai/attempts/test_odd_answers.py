"""Answers of language models in forms that are legal or widespread, though no vendor documents them."""

from typing import Any

import pytest

from storage.operators.audit import COMMAND
from tests.app.ai.attempts.odd_events import DONE, END, STOPPED, block, candidate, delta, event, said_by
from tests.app.ai.conftest import Talk
from tests.app.ai.sandbox_accounts import chat
from tests.peers.sse_client import events
from tests.running.servers import Server
from tests.waiting import until
from vendors.sandbox.faults import key_of
from vendors.sandbox.server import Running


@pytest.fixture
def server(shared_server: Server) -> Server:
    return shared_server


HEARTBEATS = "data: \n\ndata:\n\n: ping\n\ndata:   \n\n"
HALVES = '{"choices":[{"index":0,"delta":{"content":"%s"},"finish_reason":null}]}'
HIGH, LOW = (f"data: {HALVES % half}\n\n" for half in (r"a\ud83d", r"\ude00b"))
THOUGHT = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}
ODD = [
    event(), event(choices=None), event(choices=7), event(choices=[None, 7, "x", {}]), event(choices={"a": 1}),
    event(choices=[{"delta": None}]), event(choices=[{"delta": "x", "index": None}]), delta(None), delta(5),
    delta({"x": 1}), delta([None, 5]), event(usage="many", error=None), "data: [1]\n\n", 'data: "x"\n\n',
    "data: null\n\n", "data: NaN\n\n",
]  # fmt: skip


@pytest.mark.parametrize(
    ("body", "answer"),
    [
        (HEARTBEATS + delta("Hel") + HEARTBEATS + delta("lo.") + END + DONE, "Hello."),
        (delta("Hello.") + END + "data: [DONE] \n\n", "Hello."),
        (delta("Hello.") + "data: [DONE]\t\r\n\r\n", "Hello."),
        (delta("Hello.") + END + "data: {broken\n\n" + DONE, "Hello."),
        (delta("Hello.") + END + event(error={"message": "too late"}), "Hello."),
        (delta([THOUGHT]) + delta([{"type": "text", "text": "Hello."}]) + delta("") + END + DONE, "Hello."),
        (delta(["Hello", {"text": "."}]) + END + DONE, "Hello."),
        (HIGH + LOW + END + DONE, "a😀b"),
        (HIGH + HIGH + LOW + END + DONE, "a\ufffda😀b"),
        (HIGH + END + DONE, "a\ufffd"),
        (LOW + END + DONE, "\ufffdb"),
        ("".join(delta("o") + odd for odd in ODD) + END + DONE, "o" * len(ODD)),
        (delta("He", "stop") + delta("llo.", "stop") + DONE, "Hello."),
    ],
)
async def test_compatible_servers_are_understood(
    talk: Talk, server: Server, sandbox: Running, body: str, answer: str
) -> None:
    await chat(server, sandbox, "one", "vendor_b_llm", key_of(events=body))

    seen = await talk.turn("Hello", "one")

    assert (seen[-1].name, said_by(seen)) == ("end", answer), seen[-1]
    assert seen[-1].content["finish_reason"] == "stop"


@pytest.mark.parametrize(
    ("body", "answer"),
    [
        (candidate("One ") + candidate("two ") + candidate("three."), "One two three."),
        (candidate("One ", "FINISH_REASON_UNSPECIFIED") + candidate("two."), "One two."),
        (candidate("Hello.") + DONE, "Hello."),
        (candidate("Hello.") + event(error={"code": 503, "message": "too late"}), "Hello."),
    ],
)
async def test_gemini_ends_with_its_stream(
    talk: Talk, server: Server, sandbox: Running, body: str, answer: str
) -> None:
    await chat(server, sandbox, "one", "gemini", key_of(events=body))

    seen = await talk.turn("Hello", "one")

    assert (seen[-1].name, said_by(seen)) == ("end", answer), seen[-1]
    price = seen[-1].content["unit_price"]
    assert (price["input_token"], price["output_token"]) == (1, 2)


@pytest.mark.parametrize(("platform", "part"), [("gemini", candidate), ("vendor_b_llm", delta)])
async def test_a_cut_among_chunks_that_all_have_a_finish_reason_is_an_error(
    talk: Talk, server: Server, sandbox: Running, platform: str, part: Any
) -> None:
    events = part("One ", "stop") + part("two ", "stop") + part("three.", "stop")
    key = key_of(events=events.replace('"finishReason":"stop"', '"finishReason":"STOP"'), fault="cut_mid_stream")
    await chat(server, sandbox, "one", platform, f"{key},position=2")

    seen = await talk.turn("Hello", "one")

    assert (seen[-1].name, said_by(seen)) == ("error", "One two "), seen[-1]


async def test_anthropic_events_that_are_not_understood_are_skipped(
    talk: Talk, server: Server, sandbox: Running
) -> None:
    odd = [event(), event(type=None), event(type="x"), block(None), block(5), event(type="content_block_delta")]
    odd += [event(type="message_start", message=None), event(type="message_delta", delta=None), "data: []\n\n"]
    late = event(type="error", error="too late")
    body = "".join(block("o") + each for each in odd) + STOPPED + late
    await chat(server, sandbox, "one", "anthropic", key_of(events=body))

    seen = await talk.turn("Hello", "one")

    assert (seen[-1].name, said_by(seen)) == ("end", "o" * len(odd)), seen[-1]


async def test_turns_without_an_answer_do_not_repeat_a_role(talk: Talk, server: Server, sandbox: Running) -> None:
    """Chat templates such as those of Mistral and Gemma refuse two user messages in a row."""
    await chat(server, sandbox, "silent", "vendor_b_llm", key_of(fault="hang_before_output"))
    await chat(server, sandbox, "strict", "vendor_b_llm", key_of(refuses="repeated_roles"))
    await talk.turn("One", "strict")
    async with talk.say("Two", "silent") as response:
        reading = events(response)
        await until(lambda: len(list(sandbox.bill.since(0))) == 2)
        async with talk.delete(f"/bp/ai/stream/{response.headers['X-Service-Stream-Id']}") as canceled:
            assert canceled.status == 200
        ended = [event async for event in reading]
    assert ended[-1].content["finish_reason"] == "canceled"
    newest = (await talk.history())["conversation_records"][0]
    assert newest["status"] == "interrupted"

    seen = await talk.turn("Three", "strict")

    assert seen[-1].name == "end", seen[-1]


async def test_a_server_that_refuses_stream_options_is_asked_without_them(
    talk: Talk, server: Server, sandbox: Running
) -> None:
    await chat(server, sandbox, "one", "vendor_b_llm", key_of(refuses="stream_options", text="Hello."))
    other = {"chat": {"account": "one", "model": "gpt-4.1-mini"}}
    await server.services.configs.put("default", "conversation", "two", other, author="test", origin=COMMAND)

    for strategy in ("one", "one", "two"):
        seen = await talk.turn("Hello", strategy)
        assert (seen[-1].name, said_by(seen)) == ("end", "Hello."), seen[-1]

    refused = [entry for entry in sandbox.bill.since(0) if not entry.billed]
    assert len(refused) == 1, "the account remembers it"


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
    await chat(server, sandbox, "talks", "vendor_b_llm", key_of(text="yes " * 20))
    await chat(server, sandbox, "short", platform, key_of(text="Fine.", context_tokens=60))
    for _ in range(4):
        await talk.turn("well " * 4, "talks")
    before = len(list(sandbox.bill.since(0)))

    seen = await talk.turn("And now?", "short")

    assert (seen[-1].name, said_by(seen)) == ("end", "Fine."), seen[-1]
    refused, answered = list(sandbox.bill.since(0))[before:]
    assert not refused.billed
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
