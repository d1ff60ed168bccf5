"""Answers of language models in forms that are legal or widespread, though no vendor documents them."""

from collections.abc import Sequence
from typing import Any

import pytest

from storage.operators.audit import COMMAND
from streams.wire.codec import dumps
from tests.app.ai.conftest import Talk
from tests.app.ai.sandbox_accounts import chat
from tests.peers.sse_client import SeenEvent, events, named
from tests.running.servers import Server
from tests.waiting import until
from vendors.sandbox.faults import key_of
from vendors.sandbox.server import Running


@pytest.fixture
def server(shared_server: Server) -> Server:
    return shared_server


def event(**value: Any) -> str:
    return f"data: {dumps(value).decode()}\n\n"


def delta(content: Any, reason: Any = None) -> str:
    return event(choices=[{"index": 0, "delta": {"content": content}, "finish_reason": reason}])


def candidate(text: str, reason: str = "STOP") -> str:
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 2}
    content = {"parts": [{"text": text}], "role": "model"}
    return event(candidates=[{"content": content, "finishReason": reason}], usageMetadata=usage)


def said_by(seen: Sequence[SeenEvent]) -> str:
    return "".join(chunk["text"] for chunk in named(seen, "assistant_output_chunk"))


END = delta("", "stop")
DONE = "data: [DONE]\n\n"
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
        (delta("<think>Hm. 1 < 2.\n</think>\n\nHello.") + END + DONE, "Hello."),
        (
            "".join(map(delta, "\n<thinking>Hm.</thinking>\n\nHello, <b> 1<2 <thin")) + END + DONE,
            "\nHello, <b> 1<2 <thin",
        ),
        (delta("Hm. So</think>Hello.") + END + DONE, "Hello."),
        (
            delta("Put `<think>` and `</think>` around it, not <think>.") + END + DONE,
            "Put `<think>` and `</think>` around it, not <think>.",
        ),
    ],
)
async def test_compatible_servers_are_understood(
    talk: Talk, server: Server, sandbox: Running, body: str, answer: str
) -> None:
    await chat(server, sandbox, "one", "vendor_b_llm", key_of(events=body))

    seen = await talk.turn("Hello", "one")

    assert (seen[-1].name, said_by(seen)) == ("end", answer), seen[-1]
    assert seen[-1].content["finish_reason"] == "stop"


@pytest.mark.parametrize("platform", ["vendor_b_llm", "gemini", "anthropic"])
async def test_half_a_character_in_an_error_does_not_lose_the_end_of_the_stream(
    talk: Talk, server: Server, sandbox: Running, platform: str
) -> None:
    spoken = {"type": "text_delta", "text": "Hi"}
    said = {
        "vendor_b_llm": delta("Hi"),
        "gemini": candidate("Hi", ""),
        "anthropic": event(type="content_block_delta", index=0, delta=spoken),
    }
    error = r'{"type": "a\ud83d", "status": "a\ud83d", "message": "Too busy \ud83d"}'
    body = said[platform] + f'data: {{"type": "error", "error": {error}}}\n\n'
    await chat(server, sandbox, "one", platform, key_of(events=body))

    seen = await talk.turn("Hello", "one")

    assert (seen[-1].name, said_by(seen)) == ("error", "Hi"), seen[-1]
    assert seen[-1].content["error"]["message"].endswith("broke off with an error: Too busy ?")


async def test_thoughts_without_an_opening_tag_are_void_once_and_then_never_shown(
    talk: Talk, server: Server, sandbox: Running
) -> None:
    key = key_of(events=delta("Hm. So ") + delta("</think>\n\nHello.", "stop"), pace_ms=300)
    await chat(server, sandbox, "one", "vendor_b_llm", key)

    first, second = await talk.turn("Hello", "one"), await talk.turn("Hello", "one")

    assert (first[-1].name, second[-1].name) == ("end", "end")
    restarted = [event.name for event in first].index("assistant_output_restart")
    assert said_by(first[restarted:]) == said_by(second) == "Hello."
    assert "assistant_output_restart" not in [event.name for event in second]
    for record in (await talk.history())["conversation_records"]:
        assert [item["text"] for item in record["content"][1]["content"]] == ["Hello."]


async def test_text_is_held_back_only_until_a_reply_without_thoughts_ends(
    talk: Talk, server: Server, sandbox: Running
) -> None:
    options = {"options": {"begins_with_thought": True}}
    await chat(server, sandbox, "one", "vendor_b_llm", key_of(text="No thoughts at all."))
    value = {"chat": {"account": "one", "model": "gpt-4o-mini", **options}}
    await server.services.configs.put("default", "conversation", "one", value, author="test", origin=COMMAND)

    assert said_by(await talk.turn("Hello", "one")) == "No thoughts at all."


async def test_thoughts_are_shown_if_the_strategy_wants_it(talk: Talk, server: Server, sandbox: Running) -> None:
    await chat(server, sandbox, "one", "vendor_b_llm", key_of(text="<think>Hm.</think> Hello."))
    value = {"chat": {"account": "one", "model": "gpt-4o-mini", "options": {"hide_thoughts": False}}}
    await server.services.configs.put("default", "conversation", "one", value, author="test", origin=COMMAND)

    assert said_by(await talk.turn("Hello", "one")) == "<think>Hm.</think> Hello."


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
    def text(value: Any) -> str:
        return event(type="content_block_delta", index=0, delta={"type": "text_delta", "text": value})

    odd = [event(), event(type=None), event(type="x"), text(None), text(5), event(type="content_block_delta")]
    odd += [event(type="message_start", message=None), event(type="message_delta", delta=None), "data: []\n\n"]
    stop = event(type="message_delta", delta={"stop_reason": "end_turn"}, usage=None)
    late = event(type="error", error="too late")
    await chat(
        server, sandbox, "one", "anthropic", key_of(events="".join(text("o") + each for each in odd) + stop + late)
    )

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
